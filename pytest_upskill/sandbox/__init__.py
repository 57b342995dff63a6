"""Run programs that nobody trusts, confined."""
