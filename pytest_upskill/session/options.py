"""Options by kind: command line before ini file, and a UsageError for what cannot be used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

from pytest_upskill.cells.thresholds import fraction
from pytest_upskill.session.option_table import DEFAULTS

C = TypeVar("C", bound=str)
N = TypeVar("N", int, float)


def value_of(config: pytest.Config, name: str) -> Any:
    """Read one option: command line, then ini file."""
    given = config.getoption(f"upskill_{name}")
    if given is not None:
        return given
    key = f"upskill_{name}"
    try:
        return config.getini(key)
    except (TypeError, ValueError, pytest.UsageError) as error:
        # pytest names the key only where TOML holds another type.
        where = "" if key in str(error) else f"{key} in {config.inipath}: "
        raise pytest.UsageError(f"{where}{error}") from None


def number(config: pytest.Config, name: str, kind: Callable[[str], N], example: str) -> N | None:
    """Read a number, None where nothing was given; the command line gives text.

    Args:
        config: Of this process.
        name: The option's.
        kind: ``int`` or ``float``.
        example: What could be written.
    """
    value = value_of(config, name)
    try:
        return None if value is None else kind(value)
    except ValueError:
        what = "a whole number" if kind is int else "a number"
        raise pytest.UsageError(
            f"{option_of(name)}: {value!r} is not {what}: write {example}"
        ) from None


def positive(config: pytest.Config, name: str) -> int:
    """Read a whole number of at least 1."""
    default = DEFAULTS[f"upskill_{name}"]
    assert isinstance(default, int)
    value = number(config, name, int, f"one such as {default}")
    if value is None:
        return default
    if value < 1:
        raise pytest.UsageError(f"{option_of(name)} must be at least 1, got {value}")
    return value


def rate(config: pytest.Config, name: str, *, low: float = 0.0) -> float | None:
    """Read a fraction from ``low`` to 1, None where nothing was given."""
    value = number(config, name, float, "0.2 for 20 %")
    try:
        return None if value is None else fraction(value, low=low)
    except ValueError as error:
        raise pytest.UsageError(f"{option_of(name)} {error}") from None


def choice(config: pytest.Config, name: str, choices: Sequence[C]) -> C:
    """Read one of ``choices``."""
    value = value_of(config, name) or DEFAULTS[f"upskill_{name}"]
    if value not in choices:
        raise pytest.UsageError(
            f"{option_of(name)}: no such choice {value!r}: write one of {', '.join(choices)}"
        )
    return choices[choices.index(value)]


def words(config: pytest.Config, name: str, known: Sequence[C]) -> tuple[C, ...]:
    """Read a comma list of known words."""
    given = value_of(config, name)
    if given is None:
        given = DEFAULTS[f"upskill_{name}"] or ""
    written = [word.strip() for word in given.split(",") if word.strip()]
    for word in written:
        if word not in known:
            raise pytest.UsageError(
                f"{option_of(name)}: no such word {word!r}: write any of {', '.join(known)}"
            )
    return tuple(word for word in known if word in written)


def path(config: pytest.Config, name: str) -> Path | None:
    """Take what the command line names from where it was given, and the rest from the rootdir."""
    given = config.getoption(f"upskill_{name}")
    if given == "":
        # What a shell makes of a variable that is not set.
        raise pytest.UsageError(f"{option_of(name)}: the path is empty: write one or leave it out")
    if given is not None:
        return Path(config.invocation_params.dir, given)
    value = value_of(config, name)
    return Path(config.rootpath, value) if value else None


def option_of(name: str) -> str:
    """Write the option as on the command line."""
    return "--upskill-" + name.replace("_", "-")
