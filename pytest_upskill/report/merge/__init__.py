"""Merge the reports of several jobs."""
