"""The options and ini keys of a session, and their values."""
