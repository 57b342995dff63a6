"""Read ``SKILL.md`` and the files that it names."""
