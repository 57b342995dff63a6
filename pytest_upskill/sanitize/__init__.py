"""Make untrusted text safe: without keys, control characters or commands for CI runners."""
