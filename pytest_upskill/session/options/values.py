"""Read and validate option values by type; the command line takes precedence over the ini file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

from pytest_upskill.figures.thresholds import fraction
from pytest_upskill.session.options.option_table import DEFAULTS

C = TypeVar("C", bound=str)
N = TypeVar("N", int, float)


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
        # pytest names the key only if a TOML value has the wrong type.
        where = "" if key in str(error) else f"{key} in {config.inipath}: "
        raise pytest.UsageError(f"{where}{error}") from None


def number(config: pytest.Config, name: str, kind: Callable[[str], N], example: str) -> N | None:
    """Return a number, None if the option is not set.

    Args:
        config: Config of this process.
        name: Name of the option, without prefix, with underscores.
        kind: ``int`` or ``float``; values from the command line are text.
        example: Valid value for the error message.

    Raises:
        pytest.UsageError: The value is not a number.
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
    """Return a whole number of at least 1.

    Raises:
        pytest.UsageError: The value is not such a number.
    """
    value = number(config, name, int, f"one such as {DEFAULTS[f'upskill_{name}']}")
    assert value is not None  # these options have a default
    if value < 1:
        raise pytest.UsageError(f"{option_of(name)} must be at least 1, got {value}")
    return value


def rate(config: pytest.Config, name: str, *, low: float = 0.0) -> float | None:
    """Return a fraction from ``low`` to 1, None if the option is not set.

    Raises:
        pytest.UsageError: The value is not such a fraction.
    """
    value = number(config, name, float, "0.2 for 20 %")
    try:
        return None if value is None else fraction(value, low=low)
    except ValueError as error:
        raise pytest.UsageError(f"{option_of(name)} {error}") from None


def choice(config: pytest.Config, name: str, choices: Sequence[C]) -> C:
    """Return the value of an option that must be one of ``choices``.

    Raises:
        pytest.UsageError: The value is not among them.
    """
    value = value_of(config, name) or DEFAULTS[f"upskill_{name}"]
    if value not in choices:
        raise pytest.UsageError(
            f"{option_of(name)}: unknown choice {value!r}: write one of {', '.join(choices)}"
        )
    return choices[choices.index(value)]


def words(config: pytest.Config, name: str, known: Sequence[C]) -> tuple[C, ...]:
    """Return the words of a comma-separated list, in the order of ``known``.

    Raises:
        pytest.UsageError: A word is not in ``known``.
    """
    given = (value_of(config, name) or "").split(",")
    written = [word.strip() for word in given if word.strip()]
    for word in written:
        if word not in known:
            raise pytest.UsageError(
                f"{option_of(name)}: unknown word {word!r}: write any of {', '.join(known)}"
            )
    return tuple(word for word in known if word in written)


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
