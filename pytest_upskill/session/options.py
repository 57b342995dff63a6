"""Every option and ini key of the plugin, declared once.

`plugin.py` registers this table, `settings.py` reads the values, and `--help` shows the options by
group. Every run of pytest imports this module, so it imports nothing heavy.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
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


def _flag(name: str, text: str) -> Option:
    """Return an option on the command line alone: it says what is done this time."""
    return Option(name, text, kind="bool", in_ini=False)


def _setting(name: str, text: str, kind: Kind = "string") -> Option:
    """Return a key in the ini file alone: it does not vary from run to run."""
    return Option(name, text, kind=kind, on_command_line=False)


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
        Option("sandbox", "Confine code: bwrap, landlock, limits or off.", "LEVEL", default="auto"),
        Option("require-compilers", "A missing compiler is an error, not a skip.", kind="bool"),
        _flag("lint", "Report problems in skills and cases; send no request."),
        Option("write-schema", "Write the JSON Schema of skill_meta.json.", "PATH", in_ini=False),
        _setting("case-files", "Further case files: PATTERN, or PATTERN=SKILL.", "args"),
        _setting("aliases", "Your own names for models, as in 'name = model'.", "linelist"),
    ),
    "gate": (
        Option("min-pass-rate", "Fail a case if fewer of its runs pass.", "RATE", "float"),
        Option("min-mean-pass-rate", "Fail if fewer pass in the mean.", "RATE", "float"),
        Option("min-lift", "Fail if the lift is smaller; 0.2 is 20 points.", "LIFT", "float"),
        Option(
            "fail-on",
            "Fail on any of: hurts, regression, no-effect, too-few-runs, uncalibrated, cases.",
            "WORDS",
            default="hurts,regression",
        ),
        Option("compare", "Fail if a skill is worse than its baseline or ref.", "baseline|REF"),
        _flag("baseline-update", "Write the baseline of each skill, for you to commit."),
    ),
    "triggers": (
        Option("min-recall", "Fail if recall is smaller; 0.8 is 80 of 100.", "RATE", "float"),
        Option("max-false-triggers", "Fail if more trigger falsely.", "RATE", "float"),
        _setting("catalogue", "Catalogue of all skills (default: .upskill/catalogue.json)."),
        _flag("catalogue-update", "Write the catalogue file, for you to commit; run nothing."),
    ),
    "costs and recordings": (
        Option("max-cost", "Send no request that could exceed this cost.", "USD", "float"),
        Option("batch", "Send requests in batches, at half the price.", kind="bool"),
        _flag("dry-run", "Show what would be requested and its cost; send nothing."),
        Option(
            "cache",
            "Use recordings and request the rest (auto), request everything again (refresh), use "
            "recordings only (replay), or request everything and record nothing (off).",
            "MODE",
            default="auto",
        ),
        Option("cache-dir", "Folder of recordings (default: .upskill/cache).", "DIR"),
        _flag("cache-prune", "Delete the recordings that no trial uses; run nothing."),
        _setting("headers", "Headers of requests: 'label: NAME = VARIABLE'.", "linelist"),
        _setting("prices", "$ per million tokens: 'label = IN/OUT [cached RATE]'.", "linelist"),
    ),
    "reports": (
        Option("json", "Write all results as JSON.", "PATH"),
        Option("md", "Write a summary as Markdown.", "PATH"),
        Option("html", "Write one file with charts and answers.", "PATH"),
        _flag("log-runs", "Add this run to the history, without its answers."),
        _setting("runs-dir", "Folder of the history, to which every run is then added."),
    ),
}
"""The options by their heading in ``--help``."""


def place_of(config: pytest.Config, name: str) -> str:
    """Return what gives an option its value: the option, or its key in the ini file."""
    if config.getoption(f"upskill_{name}", None) is not None:
        return option_of(name)
    return f"upskill_{name} in {config.inipath or '-o'}"


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


def path_of(config: pytest.Config, name: str) -> Path | None:
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
    folder = config.rootpath if given is None else config.invocation_params.dir
    value = value_of(config, name) if given is None else given
    # Without "..", so that it can be compared with others.
    return Path(os.path.abspath(folder / value)) if value else None  # noqa: PTH100  links stay


def option_of(name: str) -> str:
    """Return the command-line name of an option."""
    return "--upskill-" + name.replace("_", "-")


@contextmanager
def usage_errors(kind: type[Exception], place: str = "") -> Iterator[None]:
    """Raise errors of a kind as those of the user, which end the run with their message.

    Args:
        kind: The errors.
        place: The option or key that they are about; "" if their messages say it.
    """
    try:
        yield
    except kind as error:
        raise pytest.UsageError(": ".join(filter(None, (place, str(error))))) from None
