"""pytest for agent skills."""

CASE_FILE = "skill_meta.json"
"""Name of the file that holds a skill's cases, beside its ``SKILL.md``."""

EVALS_FILES = frozenset({"evals.json", "evals.jsonl", "evals.yaml", "evals.yml"})
"""Names of files with cases in the shapes of others, beside a ``SKILL.md`` or near it."""

CASE_FILES = EVALS_FILES | {CASE_FILE}
"""Every name that a file of cases may have."""
