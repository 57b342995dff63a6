"""Compilers for the code in an answer."""
