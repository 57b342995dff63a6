"""Run untrusted programs in a sandbox."""
