"""pytest for agent skills."""

CASE_FILE = "skill_meta.json"
"""Name of the file that holds a skill's cases, beside its ``SKILL.md``."""
