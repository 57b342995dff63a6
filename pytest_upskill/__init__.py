"""pytest for agent skills."""

CASE_FILE = "skill_meta.json"
"""Name of the file that holds a skill's cases, beside its ``SKILL.md``."""

STATE = ".upskill"
"""Name of the folder of recordings, baselines and history in a project."""

LABELS_FILE = "judge_labels.json"
"""Name of the file beside a case file in which a person checks the judge."""

CASE_SUFFIXES = frozenset({".csv", ".json", ".jsonl", ".md", ".yaml", ".yml"})
"""Suffixes of the files from which cases can be read."""

EVALS_FILES = frozenset(
    f"{name}{suffix}"
    for name in (
        "evals",
        "evals-full",
        "trigger-eval",
        "trigger-evals",
        "trigger-queries",
        "trigger_eval",
        "trigger_evals",
        "trigger_queries",
    )
    for suffix in (".json", ".jsonl", ".yaml", ".yml")
)
"""Names of other tools' case files, beside a ``SKILL.md`` or near it."""

CASE_FILES = EVALS_FILES | {CASE_FILE}
"""Every name that only files of cases have."""
