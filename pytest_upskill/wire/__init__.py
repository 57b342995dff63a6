"""Formats of the providers' APIs."""
