"""Every option and ini key of the plugin, declared once.

`plugin.py` registers this table, `settings.py` reads the values, and `--help` shows the options by
group. Every run of pytest with this plugin installed imports this module, so it imports nothing
heavy.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Kind = Literal["string", "int", "float", "bool", "args", "linelist"]
Group = Literal["run", "gate", "triggers", "money and recordings", "reports"]


class Option(NamedTuple):
    """An option on the command line, a key in the ini file, or both.

    Attributes:
        name: Name without the prefixes ``--upskill-`` and ``upskill_``.
        group: Heading in ``--help``.
        help: Help text, a sentence without the default.
        metavar: Placeholder for the value in ``--help``.
        kind: Type of the ini key; a ``bool`` is a flag on the command line.
        default: Value if neither is set; None for no value.
        on_command_line: Whether there is a command-line option.
        in_ini: Whether there is an ini key.
        plural: Name of the ini key if it differs, for an option that is repeated on the command
            line.
    """

    name: str
    group: Group
    help: str
    metavar: str | None = None
    kind: Kind = "string"
    default: str | float | None = None
    on_command_line: bool = True
    in_ini: bool = True
    plural: str = ""

    @property
    def flag(self) -> str:
        """Name on the command line."""
        return f"--upskill-{self.name}"

    @property
    def key(self) -> str:
        """Name in the ini file."""
        return f"upskill_{(self.plural or self.name).replace('-', '_')}"


OPTIONS = (
    Option(
        "models",
        "run",
        "Run the skills' cases on these models, with and without the skill: an alias (haiku, "
        "sonnet, opus), offline, or [label=][host:]model[@base_url].",
        "MODEL[,MODEL...]",
        "args",
    ),
    Option(
        "base-url", "run", "OpenAI-compatible server for models whose provider is not known.", "URL"
    ),
    Option(
        "param",
        "run",
        "Send this with every request: temperature, top_p, seed, stop, effort, max_tokens or "
        "body.NAME=JSON; only to the model with that label, or to the judge with judge:.",
        "[LABEL:]KEY=VALUE",
        "args",
        plural="params",
    ),
    Option(
        "judge",
        "run",
        "Model that decides whether 'judge' statements are true of an answer.",
        "MODEL",
    ),
    Option("runs", "run", "Runs of each case in each arm.", "N", "int", 1),
    Option(
        "changed-since",
        "run",
        "Run only skills whose folder changed since this git ref.",
        "REF",
    ),
    Option(
        "shard",
        "run",
        "Run only the K-th of N shards of the trials; merge the reports afterwards.",
        "K/N",
    ),
    Option(
        "concurrency", "run", "Maximum number of requests in flight at one host.", "N", "int", 20
    ),
    Option("max-tokens", "run", "Maximum output tokens of one answer.", "N", "int", 8192),
    Option("timeout", "run", "Timeout of one request.", "SECONDS", "int", 120),
    Option(
        "early-stop",
        "run",
        "Request answers in rounds, and stop for a skill on a model once its verdict is clear.",
        kind="bool",
    ),
    Option(
        "sandbox",
        "run",
        "How compilers and code of answers are confined: auto, bwrap, landlock, limits or off.",
        "LEVEL",
        default="auto",
    ),
    Option(
        "require-compilers",
        "run",
        "Make a missing compiler an error instead of a skip.",
        kind="bool",
    ),
    Option(
        "lint",
        "run",
        "Report problems of skills and cases, and send no requests.",
        kind="bool",
        in_ini=False,
    ),
    Option(
        "write-schema",
        "run",
        "Write the JSON Schema of skill_meta.json, for editors, and run nothing.",
        "PATH",
        in_ini=False,
    ),
    Option(
        "case-files",
        "run",
        "More names of files with cases, such as '*-checks.json', or "
        "'cases/csv.yaml=skills/csv' for cases of that skill.",
        kind="args",
        on_command_line=False,
    ),
    Option(
        "max-cases",
        "run",
        "Maximum number of cases in a run.",
        kind="int",
        default=20000,
        on_command_line=False,
    ),
    Option(
        "aliases",
        "run",
        "Your own names of models, 'name = model'.",
        kind="linelist",
        on_command_line=False,
    ),
    Option(
        "min-pass-rate",
        "gate",
        "Share of runs that must pass: of each case (default: all), and of a skill on a model.",
        "RATE",
        "float",
    ),
    Option(
        "min-lift",
        "gate",
        "Fail a skill whose lift on a model is smaller; 0.2 is 20 points.",
        "LIFT",
        "float",
    ),
    Option(
        "fail-on",
        "gate",
        "Fail on any of hurts, regression, no-effect, too-few-runs, uncalibrated.",
        "WORDS",
        default="hurts,regression",
    ),
    Option(
        "compare",
        "gate",
        "Fail a skill that is worse than its committed baseline, or than at this git ref.",
        "baseline|REF",
    ),
    Option(
        "baseline-update",
        "gate",
        "Write the results of each case into .upskill/baselines, to be committed.",
        kind="bool",
        in_ini=False,
    ),
    Option(
        "min-recall",
        "triggers",
        "Fail a skill that is taken for a smaller share of the queries that should trigger it.",
        "RATE",
        "float",
    ),
    Option(
        "max-false-triggers",
        "triggers",
        "Fail a skill that is taken for a larger share of the queries that should not.",
        "RATE",
        "float",
    ),
    Option(
        "catalogue",
        "triggers",
        "File with the names and descriptions of all skills (default: .upskill/catalogue.json, if "
        "there is one; else the skills next to the one under test).",
        on_command_line=False,
    ),
    Option(
        "catalogue-update",
        "triggers",
        "Write the names and descriptions of the skills into that file, to be committed, and run "
        "nothing.",
        kind="bool",
        in_ini=False,
    ),
    Option(
        "max-cost",
        "money and recordings",
        "Maximum cost in dollars: send no request that could exceed it.",
        "USD",
        "float",
    ),
    Option(
        "dry-run",
        "money and recordings",
        "Show what would be requested and its maximum cost, and send no requests.",
        kind="bool",
        in_ini=False,
    ),
    Option(
        "cache",
        "money and recordings",
        "How recordings are used: auto, refresh, replay or off.",
        "MODE",
        default="auto",
    ),
    Option(
        "cache-dir",
        "money and recordings",
        "Folder of recordings (default: .upskill/cache at the root of the repository).",
        "DIR",
    ),
    Option(
        "cache-prune",
        "money and recordings",
        "Delete recordings that no trial uses, and run nothing; --upskill-dry-run lists them.",
        kind="bool",
        in_ini=False,
    ),
    Option(
        "prices",
        "money and recordings",
        "Your own prices in dollars per million tokens, 'label = IN/OUT' or 'label = IN/OUT "
        "cached RATE'.",
        kind="linelist",
        on_command_line=False,
    ),
    Option("json", "reports", "Write all results as JSON.", "PATH"),
    Option(
        "md",
        "reports",
        "Write a summary in Markdown, for example for a comment on a pull request.",
        "PATH",
    ),
    Option("html", "reports", "Write one HTML file with charts and answers.", "PATH"),
    Option(
        "benchmark-json", "reports", "Write benchmark.json in the format of skill-creator.", "PATH"
    ),
    Option(
        "log-runs",
        "reports",
        "Write a report without answers into upskill_runs_dir, for 'pytest-upskill runs'.",
        kind="bool",
        in_ini=False,
    ),
    Option(
        "runs-dir",
        "reports",
        "Folder into which every run writes a report without answers (with --upskill-log-runs: "
        ".upskill/runs).",
        on_command_line=False,
    ),
    Option(
        "junit-properties",
        "reports",
        "Repeat JUnit properties under the names that datadog and codecov read.",
        "WORDS",
    ),
)

DEFAULTS = {option.key: option.default for option in OPTIONS}
"""Defaults by ini key."""
