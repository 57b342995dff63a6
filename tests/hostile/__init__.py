"""Hostile answers at every level of the sandbox: what they steal, break, leave and use up."""
