"""Python: whether it compiles, and whether it passes tests."""
