"""Texts for output: safe ones, without keys or control characters, and how counts are worded."""
