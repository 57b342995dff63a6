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


OPTIONS: dict[str, tuple[Option, ...]] = {
    "run": (
        Option(
            "models",
            "Run the cases of skills on these models, with and without the skill: an alias (haiku, "
            "sonnet, opus, kimi), offline, or [label=][agent:][host:]model[@base_url].",
            "MODEL[,MODEL...]",
            "args",
        ),
        Option("base-url", "OpenAI-compatible server for models that name no host.", "URL"),
        Option(
            "param",
            "Send this parameter with every request: temperature, top_p, seed, stop, effort, "
            "max_tokens or body.NAME=JSON; only to the model LABEL, or to the judge.",
            "[LABEL:]KEY=VALUE",
            "args",
            plural="params",
        ),
        Option("judge", "Model that decides 'judge' statements.", "MODEL"),
        Option("runs", "Runs of each case in each arm.", "N", "int", 1),
        Option("baseline-runs", "Runs without the skill (default: as with it).", "N", "int"),
        Option("at-k", "Also report pass@K and pass^K.", "K", "int"),
        Option("changed-since", "Run only skills that changed since this git ref.", "REF"),
        Option("concurrency", "Maximum requests in flight at one host.", "N", "int", 20),
        Option("max-tokens", "Maximum output tokens of one answer.", "N", "int", 8192),
        Option("timeout", "Seconds to wait for a reply.", "SECONDS", "int", 120),
        Option("early-stop", "Stop a skill on a model once its verdict is clear.", kind="bool"),
        Option(
            "sandbox",
            "Confine the code of answers by: auto, bwrap, landlock, limits or off.",
            "LEVEL",
            default="auto",
        ),
        Option("require-compilers", "A missing compiler is an error, not a skip.", kind="bool"),
        Option("lint", "Report problems in skills; ask no model.", kind="bool", in_ini=False),
        Option("write-schema", "Write the JSON Schema of skill_meta.json.", "PATH", in_ini=False),
        Option(
            "case-files",
            "Additional case files, such as '*-checks.json', or 'cases/csv.yaml=skills/csv' to "
            "name the skill that a file belongs to.",
            kind="args",
            on_command_line=False,
        ),
        Option(
            "aliases",
            "Your own names for models, as in 'name = model'.",
            kind="linelist",
            on_command_line=False,
        ),
    ),
    "gate": (
        Option(
            "min-pass-rate", "Least share of runs that pass (default: over half).", "RATE", "float"
        ),
        Option("min-mean-pass-rate", "Least mean pass rate of all cases.", "RATE", "float"),
        Option("min-lift", "Fail if the lift is smaller; 0.2 is 20 points.", "LIFT", "float"),
        Option(
            "fail-on",
            "Fail on any of: hurts, regression, no-effect, too-few-runs, uncalibrated.",
            "WORDS",
            default="hurts,regression",
        ),
        Option("compare", "Fail if a skill is worse than its baseline or ref.", "baseline|REF"),
        Option("baseline-update", "Write the baseline to commit.", kind="bool", in_ini=False),
    ),
    "triggers": (
        Option(
            "min-recall", "Fail if the recall of triggers is smaller, from 0 to 1.", "RATE", "float"
        ),
        Option("max-false-triggers", "Largest share of false triggers.", "RATE", "float"),
        Option(
            "catalogue",
            "File with the names and descriptions of all skills (default: .upskill/catalogue.json "
            "if it exists, otherwise the skills next to the one under test).",
            on_command_line=False,
        ),
        Option("catalogue-update", "Write the catalogue.", kind="bool", in_ini=False),
    ),
    "costs and recordings": (
        Option("max-cost", "Send no request that could exceed this cost.", "USD", "float"),
        Option("batch", "Send requests in batches, at half the price.", kind="bool"),
        Option("dry-run", "Show what a run costs; send nothing.", kind="bool", in_ini=False),
        Option(
            "cache",
            "Use recordings and request the rest (auto), request everything again (refresh), use "
            "recordings only (replay), or request everything and record nothing (off).",
            "MODE",
            default="auto",
        ),
        Option("cache-dir", "Folder of recordings (default: .upskill/cache).", "DIR"),
        Option("cache-prune", "Delete unused recordings; run nothing.", kind="bool", in_ini=False),
        Option(
            "headers",
            "Further headers of requests to a model, as in 'label: NAME = VARIABLE', with the "
            "value in an environment variable.",
            kind="linelist",
            on_command_line=False,
        ),
        Option(
            "prices",
            "Your own prices in dollars per million tokens, as in 'label = IN/OUT' or 'label = "
            "IN/OUT cached RATE'.",
            kind="linelist",
            on_command_line=False,
        ),
    ),
    "reports": (
        Option("json", "Write all results as JSON.", "PATH"),
        Option("md", "Write a summary as Markdown.", "PATH"),
        Option("html", "Write one file with charts and answers.", "PATH"),
        Option("log-runs", "Add this run to the history.", kind="bool", in_ini=False),
        Option(
            "runs-dir",
            "Folder of the history, to which every run is then added (default with "
            "--upskill-log-runs: .upskill/runs).",
            on_command_line=False,
        ),
    ),
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
    given = config.getoption(f"upskill_{name}", None)
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
