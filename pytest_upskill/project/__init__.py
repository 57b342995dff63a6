"""The project on disk: its folder, its git history, and how its files are written."""
