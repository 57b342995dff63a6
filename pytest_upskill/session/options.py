"""Every option and ini key of the plugin, declared once.

`plugin.py` registers this table, `settings.py` reads the values, and `--help` shows the options by
group. Every run of pytest imports this module, so it imports nothing heavy.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pytest

Kind = Literal["string", "int", "float", "bool", "args", "linelist"]


class Option(NamedTuple):
    """An option on the command line, a key in the ini file, or both.

    Attributes:
        name: Name without the prefixes ``--upskill-`` and ``upskill_``.
        help: Help text, a sentence without the default.
        metavar: Placeholder for the value in ``--help``.
        kind: Type of the ini key; a ``bool`` is a flag on the command line.
        default: Value if neither is set; None for no value.
        on_command_line: Whether there is a command-line option.
        in_ini: Whether there is an ini key.
        plural: Name of the ini key of an option that may be repeated, if it differs.
    """

    name: str
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


_RUN = (
    Option(
        "models",
        "Run the cases of skills on these models, with and without the skill: an alias (haiku, "
        "sonnet, opus, kimi), offline, or [label=][agent:][host:]model[@base_url].",
        "MODEL[,MODEL...]",
        "args",
    ),
    Option(
        "base-url",
        "Base URL of an OpenAI-compatible server, for models that name no host.",
        "URL",
    ),
    Option(
        "param",
        "Send this parameter with every request: temperature, top_p, seed, stop, effort, "
        "max_tokens or body.NAME=JSON. The prefix LABEL: restricts it to one model, judge: to the "
        "judge. May be repeated.",
        "[LABEL:]KEY=VALUE",
        "args",
        plural="params",
    ),
    Option(
        "judge",
        "Model that decides the 'judge' statements of cases; without it, they are ungraded.",
        "MODEL",
    ),
    Option("runs", "Number of runs of each case in each arm.", "N", "int", 1),
    Option(
        "baseline-runs",
        "Number of runs without the skill (default: as many as with it).",
        "N",
        "int",
    ),
    Option(
        "at-k",
        "Also report pass@K and pass^K: at least one of K runs passes, and all of them do.",
        "K",
        "int",
    ),
    Option(
        "changed-since",
        "Run only skills whose folder has changed since the branch left this git ref.",
        "REF",
    ),
    Option("concurrency", "Maximum number of requests in flight at one host.", "N", "int", 20),
    Option("max-tokens", "Maximum number of output tokens of one answer.", "N", "int", 8192),
    Option("timeout", "Seconds to wait for the reply to a request.", "SECONDS", "int", 120),
    Option(
        "early-stop",
        "Request answers in rounds; stop a skill on a model once more would hardly change its "
        "verdict.",
        kind="bool",
    ),
    Option(
        "sandbox",
        "How to confine compilers and the code of answers: auto, bwrap, landlock, limits or off.",
        "LEVEL",
        default="auto",
    ),
    Option(
        "require-compilers",
        "Report a missing compiler as an error instead of skipping the case.",
        kind="bool",
    ),
    Option(
        "lint",
        "Report problems in skills and cases; send no requests.",
        kind="bool",
        in_ini=False,
    ),
    Option(
        "write-schema",
        "Write the JSON Schema of skill_meta.json to PATH, for editors; run nothing.",
        "PATH",
        in_ini=False,
    ),
    Option(
        "case-files",
        "Additional case files, such as '*-checks.json', or 'cases/csv.yaml=skills/csv' to name "
        "the skill that a file belongs to.",
        kind="args",
        on_command_line=False,
    ),
    Option(
        "aliases",
        "Your own names for models, as in 'name = model'.",
        kind="linelist",
        on_command_line=False,
    ),
)
_GATE = (
    Option(
        "min-pass-rate",
        "Share of a case's runs that must pass, from 0 to 1 (default: more than half of them).",
        "RATE",
        "float",
    ),
    Option(
        "min-mean-pass-rate",
        "Fail the gate if the mean pass rate of a skill's cases is smaller, from 0 to 1.",
        "RATE",
        "float",
    ),
    Option(
        "min-lift",
        "Fail the gate if the lift is smaller; 0.2 is 20 points.",
        "LIFT",
        "float",
    ),
    Option(
        "fail-on",
        "Fail the gate on any of these: hurts, regression, no-effect, too-few-runs, uncalibrated.",
        "WORDS",
        default="hurts,regression",
    ),
    Option(
        "compare",
        "Fail the gate if the skill is worse than its committed baseline, or than at this git ref.",
        "baseline|REF",
    ),
    Option(
        "baseline-update",
        "Write the results of each case to .upskill/baselines, for you to commit.",
        kind="bool",
        in_ini=False,
    ),
)
_TRIGGERS = (
    Option(
        "min-recall",
        "Fail the trigger gate if the skill is chosen for a smaller share of the queries that "
        "should trigger it.",
        "RATE",
        "float",
    ),
    Option(
        "max-false-triggers",
        "Fail the trigger gate if the skill is chosen for a larger share of the queries that "
        "should not trigger it.",
        "RATE",
        "float",
    ),
    Option(
        "catalogue",
        "Catalogue file, with the names and descriptions of all skills (default: "
        ".upskill/catalogue.json if it exists, otherwise the skills next to the one under test).",
        on_command_line=False,
    ),
    Option(
        "catalogue-update",
        "Write the names and descriptions of the skills to the catalogue file, for you to commit; "
        "run nothing.",
        kind="bool",
        in_ini=False,
    ),
)
_COSTS = (
    Option(
        "max-cost",
        "Maximum cost in dollars; no request that could exceed it is sent.",
        "USD",
        "float",
    ),
    Option(
        "batch",
        "Send requests in batches at half the price, where the vendor has them; answers may take "
        "up to a day. Ctrl-C leaves a batch, and the same command collects it.",
        kind="bool",
        default=False,
    ),
    Option(
        "dry-run",
        "Show how many answers would be requested and their maximum cost; send no requests.",
        kind="bool",
        in_ini=False,
    ),
    Option(
        "cache",
        "Use recordings and request the rest (auto), request everything again (refresh), use "
        "recordings only (replay), or request everything and record nothing (off).",
        "MODE",
        default="auto",
    ),
    Option(
        "cache-dir",
        "Folder of recordings (default: .upskill/cache at the root of the repository).",
        "DIR",
    ),
    Option(
        "cache-prune",
        "Delete the recordings that no trial uses; run nothing. With --upskill-dry-run, only list "
        "them.",
        kind="bool",
        in_ini=False,
    ),
    Option(
        "headers",
        "Further headers of requests to a model, as in 'label: NAME = VARIABLE', with the value in "
        "an environment variable.",
        kind="linelist",
        on_command_line=False,
    ),
    Option(
        "prices",
        "Your own prices in dollars per million tokens, as in 'label = IN/OUT' or 'label = IN/OUT "
        "cached RATE'.",
        kind="linelist",
        on_command_line=False,
    ),
)
_REPORTS = (
    Option("json", "Write all results to PATH as JSON.", "PATH"),
    Option(
        "md",
        "Write a summary to PATH as Markdown, for example for a comment on a pull request.",
        "PATH",
    ),
    Option("html", "Write one self-contained HTML file with charts and answers.", "PATH"),
    Option(
        "log-runs",
        "Add this run, without its answers, to the history that 'pytest-upskill runs' shows.",
        kind="bool",
        in_ini=False,
    ),
    Option(
        "runs-dir",
        "Folder of the history, to which every run is then added (default with "
        "--upskill-log-runs: .upskill/runs).",
        on_command_line=False,
    ),
)
OPTIONS: dict[str, tuple[Option, ...]] = {
    "run": _RUN,
    "gate": _GATE,
    "triggers": _TRIGGERS,
    "costs and recordings": _COSTS,
    "reports": _REPORTS,
}
"""The options by their heading in ``--help``."""


def value_of(config: pytest.Config, name: str) -> Any:
    """Return the value of an option: from the command line, the ini file, or its default.

    Args:
        config: Config of this process.
        name: Name of the option, without prefix, with underscores.

    Raises:
        pytest.UsageError: pytest cannot read the ini value.
    """
    key = f"upskill_{name}"
    given = config.getoption(key, None)
    if given is not None:
        return given
    try:
        return config.getini(key)
    except (TypeError, ValueError, pytest.UsageError) as error:
        # pytest names the key only if a TOML value has the wrong type; else it has Python's words.
        where = "" if key in str(error) else f"{key} in {config.inipath or '-o'}: "
        what = re.sub("(invalid literal|could not convert).*(?=: )", "not a number", str(error))
        raise pytest.UsageError(f"{where}{what}") from None


def path(config: pytest.Config, name: str) -> Path | None:
    """Return a path, None if the option is not set.

    A path on the command line is relative to the current directory, one in the ini file to the
    rootdir.

    Raises:
        pytest.UsageError: The path on the command line is empty.
    """
    given = config.getoption(f"upskill_{name}")
    if given == "":
        # A shell variable that is not set expands to this.
        raise pytest.UsageError(
            f"{option_of(name)}: the path is empty: write a path, or leave the option out"
        )
    if given is not None:
        return Path(config.invocation_params.dir, given)
    value = value_of(config, name)
    return Path(config.rootpath, value) if value else None


def option_of(name: str) -> str:
    """Return the command-line name of an option."""
    return "--upskill-" + name.replace("_", "-")
