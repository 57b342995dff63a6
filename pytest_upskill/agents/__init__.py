"""Agents: models that work with tools in a workspace, where skills are found and loaded."""
