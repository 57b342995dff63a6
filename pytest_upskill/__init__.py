"""pytest for agent skills."""

CASE_FILE = "skill_meta.json"
"""Name of the file that holds a skill's cases, beside its ``SKILL.md``."""

STATE = ".upskill"
"""Name of the folder of recordings, baselines and history in a project."""

LABELS_FILE, KEY_FILE = "judge_labels.json", "judge_key.json"
"""Name of the file beside a case file in which a person checks the judge."""

CASE_SUFFIXES = frozenset({".csv", ".json", ".jsonl", ".md", ".yaml", ".yml"})
"""Suffixes of the files from which cases can be read."""

CASE_FILES = frozenset({CASE_FILE, "evals.json"})
"""The names of case files that a session without models mentions."""
