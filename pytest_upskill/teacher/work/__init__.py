"""How a command with a teacher works: requests within limits, consent, and its decision."""
