"""The repository around the skills: its git history, and the folder that holds .upskill."""
