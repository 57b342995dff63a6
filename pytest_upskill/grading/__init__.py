"""Grading of answers, by code and by a judge."""
