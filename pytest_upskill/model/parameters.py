"""Parameters of requests, such as the temperature: how they are written, and their ranges."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from pytest_upskill.sanitize.suggestion import did_you_mean

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""How much a model may reason, from the least; each vendor knows some of them."""

_ENTRY = re.compile(
    r"(?:(?P<scope>[A-Za-z0-9][A-Za-z0-9._-]*):)?(?P<key>[^=:\s]+)\s*=(?P<value>.*)", re.DOTALL
)
_MOST_SEED = 2**31 - 1
_SEEDS_OF_A_DRAW = 100_000
"""More than a trial has runs, so that no two cases that ask the same send the same seed."""
_FIXED = frozenset({"model", "messages", "system", "tools", "stream", "n"})
"""Fields of a request that are measured, or without which the reply could not be read."""
OTHER_NAMES = {
    "max_completion_tokens": "max_tokens",
    "random_seed": "seed",
    "reasoning_effort": "effort",
    "stop_sequences": "stop",
}
"""Names of parameters in the vendors' formats."""


class ParameterError(ValueError):
    """An invalid parameter; the message says how to write it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """The parameters of a model's requests; the host decides what is None or empty."""

    temperature: float | None = None
    """Randomness, from 0 to 2."""
    top_p: float | None = None
    """Share of the probability from which tokens are taken, above 0 up to 1."""
    seed: int | None = None
    """Seed of the first run; run r, counted from 0, sends ``seed + r``."""
    stop: tuple[str, ...] = ()
    """Texts that end an answer."""
    effort: str | None = None
    """How much to reason, one of `EFFORTS`."""
    max_tokens: int | None = None
    """Maximum of output tokens, instead of ``--upskill-max-tokens``."""
    body: tuple[tuple[str, str], ...] = ()
    """Further fields of the request by name, each with its JSON."""

    def __bool__(self) -> bool:
        """Return whether anything is set."""
        return any(True for _ in self._entries())

    def __str__(self) -> str:
        """Return the parameters as they are written, separated by spaces."""
        return " ".join(self.entries)

    @property
    def entries(self) -> tuple[str, ...]:
        """Each as ``key=value``, in a fixed order and spelling."""
        return tuple(self._entries())

    @property
    def one_run_is_enough(self) -> bool:
        """Whether every run gives the same answer: the temperature is 0."""
        return self.temperature == 0

    @property
    def fields(self) -> dict[str, Any]:
        """The further fields of the request."""
        return {name: json.loads(text) for name, text in self.body}

    def seed_of(self, run: int, draw: int = 0) -> int | None:
        """Return the seed of a run, counted from 0; None for none.

        Args:
            run: Index of the run.
            draw: Number of earlier cases that ask the same.
        """
        if self.seed is None:
            return None
        return (self.seed + run + draw * _SEEDS_OF_A_DRAW) % (_MOST_SEED + 1)

    def with_defaults(self, others: Parameters) -> Parameters:
        """Return these parameters, with what is not set taken from others."""
        names = [field.name for field in fields(self) if field.name != "body"]
        values = {
            name: getattr(others if getattr(self, name) in {None, ()} else self, name)
            for name in names
        }
        body = {**dict(others.body), **dict(self.body)}
        return Parameters(**values, body=tuple(sorted(body.items())))

    def _entries(self) -> Iterator[str]:
        for key in _READERS:
            value = getattr(self, key)
            if value is None or value == ():
                continue
            yield f"{key}={json.dumps(value) if key == 'stop' else _plain(value)}"
        yield from (f"body.{name}={value}" for name, value in self.body)


def read_parameters(entries: Iterable[str]) -> dict[str, Parameters]:
    """Read parameters, each written as ``[LABEL:]KEY=VALUE``.

    Returns:
        The parameters by label; "" for those without a label.

    Raises:
        ParameterError: An entry is invalid, or given twice.
    """
    values: dict[str, dict[str, Any]] = {}
    for entry in entries:
        match = _ENTRY.fullmatch(entry.strip())
        if match is None:
            raise ParameterError(f"{entry!r}: write [LABEL:]KEY=VALUE, such as temperature=0")
        scope, key = match["scope"] or "", match["key"]
        of_scope = values.setdefault(scope, {})
        if key in of_scope:
            raise ParameterError(f"{entry!r}: {key} is given twice: remove one of the two")
        try:
            of_scope[key] = _read(key, match["value"].strip())
        except ParameterError as error:
            raise ParameterError(f"{entry!r}: {error}") from None
    return {scope: _parameters(of_scope) for scope, of_scope in values.items()}


def _parameters(values: Mapping[str, Any]) -> Parameters:
    body = {key.removeprefix("body."): text for key, text in values.items() if "." in key}
    known = {key: value for key, value in values.items() if "." not in key}
    return Parameters(**known, body=tuple(sorted(body.items())))


def _read(key: str, text: str) -> object:
    if key.startswith("body."):
        return _field(key.removeprefix("body."), text)
    if key in _READERS:
        return _READERS[key](text)
    suggestion = did_you_mean(OTHER_NAMES.get(key, key), _READERS)
    raise ParameterError(
        f"no parameter {key!r}{suggestion}: write {', '.join(_READERS)}, or body.{key}=JSON "
        "for a field that only one server knows"
    )


def _field(name: str, text: str) -> str:
    """Return the JSON of a further field, in a fixed spelling."""
    if name in _FIXED:
        raise ParameterError(f"{name!r} cannot be set: it is part of what is measured")
    if (own := OTHER_NAMES.get(name, name)) in _READERS:
        raise ParameterError(f"write {own}={text} instead")
    try:
        return json.dumps(json.loads(text, parse_constant=_no_constant), sort_keys=True)
    except ValueError:
        raise ParameterError(f"{text!r} is not JSON: a text needs quotes, '\"{text}\"'") from None


def _no_constant(name: str) -> None:
    raise ValueError(name)


def _number(low: float, high: float, *, above: bool = False) -> Callable[[str], float]:
    """Make a reader of numbers from ``low``, or above it, to ``high``."""

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            raise ParameterError(f"{text!r} is not a number") from None
        if math.isnan(value) or not low <= value <= high or (above and value == low):
            least = f"above {low:g} and at most" if above else f"between {low:g} and"
            raise ParameterError(f"must be {least} {high:g}")
        return value

    return read


def _whole(low: int, high: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not re.fullmatch(r"\d{1,12}", text, re.ASCII) or not low <= int(text) <= high:
            raise ParameterError(f"must be a whole number between {low} and {high}")
        return int(text)

    return read


def _stop(text: str) -> tuple[str, ...]:
    """Read a text, or a JSON text or list of texts, for line breaks and several."""
    value: object = text
    if text.startswith(("[", '"')):
        try:
            value = json.loads(text)
        except ValueError:
            raise ParameterError(
                'is not JSON: write a text or a list such as ["END", "\\n"]'
            ) from None
    texts = [value] if isinstance(value, str) else value
    if not (isinstance(texts, list) and texts and all(isinstance(t, str) and t for t in texts)):
        raise ParameterError('must be a text or a list of texts such as ["END", "\\n"]')
    return tuple(texts)


def _effort(text: str) -> str:
    if text not in EFFORTS:
        raise ParameterError(f"must be one of {', '.join(EFFORTS)}")
    return text


def _plain(value: float | str) -> str:
    return value if isinstance(value, str) else repr(value).removesuffix(".0")


_READERS: Mapping[str, Callable[[str], Any]] = {
    "temperature": _number(0, 2),
    "top_p": _number(0, 1, above=True),
    "seed": _whole(0, _MOST_SEED),
    "stop": _stop,
    "effort": _effort,
    "max_tokens": _whole(1, 10**9),
}
"""The reader of each parameter's value."""

NAMES = frozenset(_READERS)
"""The names of parameters."""
