"""How a command with a teacher works: its terms, requests within limits, and what it writes."""
