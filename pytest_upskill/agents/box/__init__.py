"""The process of an agent's program in its sandbox."""
