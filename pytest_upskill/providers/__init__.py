"""Clients of the model providers."""
