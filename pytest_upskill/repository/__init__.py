"""The git history of skills, and the project's folder."""
