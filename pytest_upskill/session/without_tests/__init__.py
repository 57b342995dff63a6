"""Sessions that run no tests."""
