"""Formats of the providers' APIs: bodies of requests, and the completions in replies."""
