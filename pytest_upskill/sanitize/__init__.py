"""Make text of others harmless: no keys, no control characters, no commands for CI runners."""
