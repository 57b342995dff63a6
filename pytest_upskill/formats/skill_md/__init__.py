"""Read SKILL.md and the files around it."""
