"""The built-in agent."""
