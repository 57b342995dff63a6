"""Versions of a skill: drafts, edits, and the search for a better one."""
