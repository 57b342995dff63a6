"""Parameters of requests, such as the temperature: how they are written, and their ranges."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, Literal, get_type_hints

from pydantic import Field, TypeAdapter, ValidationError

from pytest_upskill.project.messages import did_you_mean

_ENTRY = re.compile(
    r"(?:(?P<scope>[A-Za-z0-9][A-Za-z0-9._-]*):)?(?P<key>[^=:\s]+)\s*=(?P<value>.*)", re.DOTALL
)
MAX_SEED = 2**31 - 1
_RESERVED_FIELDS = frozenset(
    {
        *("model", "messages", "system", "tools", "stream", "n"),
        *("max_completion_tokens", "max_output_tokens"),
    }
)
"""Fields of a request that are measured or priced, or without which no reply could be read."""


class ParameterError(ValueError):
    """An invalid parameter; the message says how to write it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """The parameters of a model's requests; those that are None or empty are not set."""

    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    """Randomness."""
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    """Share of the probability from which tokens are taken."""
    seed: Annotated[int, Field(ge=0, le=MAX_SEED)] | None = None
    """Seed of the first run; run r, counted from 0, sends ``seed + r``."""
    stop: Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1)] = ()
    """Texts that end an answer."""
    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    """How much to reason; each vendor knows some of the words."""
    max_tokens: Annotated[int, Field(ge=1, le=10**9)] | None = None
    """Maximum of output tokens, instead of ``--upskill-max-tokens``."""
    body: tuple[tuple[str, str], ...] = ()
    """Further fields of the request by name, each with its JSON."""

    def __bool__(self) -> bool:
        """Return whether anything is set."""
        return bool(self.entries)

    def __str__(self) -> str:
        """Return the parameters as they are written, separated by spaces."""
        return " ".join(self.entries)

    @property
    def entries(self) -> tuple[str, ...]:
        """The parameters that are set, as ``key=value``, in a fixed order and spelling."""
        spelled = (
            f"{key}={json.dumps(value) if key == 'stop' else _plain(value)}"
            for key, value in self._values().items()
        )
        return (*spelled, *(f"body.{name}={value}" for name, value in self.body))

    def body_with(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of a request that are not None, and those of ``body``."""
        further = {name: json.loads(text) for name, text in self.body}
        return {name: value for name, value in fields.items() if value is not None} | further

    def with_defaults(self, defaults: Parameters) -> Parameters:
        """Return these parameters; those that are not set are taken from ``defaults``."""
        body = {**dict(defaults.body), **dict(self.body)}
        return replace(defaults, **self._values(), body=tuple(sorted(body.items())))

    def _values(self) -> dict[str, Any]:
        """Return the values that are set, by key."""
        values = {key: getattr(self, key) for key in KEYS}
        return {key: value for key, value in values.items() if value not in (None, ())}


KEYS = tuple(field.name for field in fields(Parameters) if field.name != "body")
"""The keys of parameters that have a name of their own."""


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
        scope_values = values.setdefault(scope, {})
        if key in scope_values:
            raise ParameterError(f"{entry!r}: {key} is given twice: remove one of the two")
        try:
            scope_values[key] = _read(key, match["value"].strip())
        except ParameterError as error:
            raise ParameterError(f"{entry!r}: {error}") from None
    return {scope: _parameters(scope_values) for scope, scope_values in values.items()}


def _parameters(values: dict[str, Any]) -> Parameters:
    """Make parameters from values by key."""
    body = [(key.removeprefix("body."), values.pop(key)) for key in sorted(values) if "." in key]
    return Parameters(**values, body=tuple(body))


def _read(key: str, text: str) -> object:
    """Return the value of a parameter; raise ParameterError if the key or the value is invalid."""
    if key.startswith("body."):
        return _field(key.removeprefix("body."), text)
    if key not in KEYS:
        raise ParameterError(
            f"no parameter {key!r}{did_you_mean(key, KEYS)}: write {', '.join(KEYS)}, or "
            f"body.{key}=JSON for a field that only one server knows"
        )
    value = TypeAdapter[Any](get_type_hints(Parameters, include_extras=True)[key])
    try:
        if key == "stop":
            return value.validate_json(text if text.startswith("[") else json.dumps([text]))
        return value.validate_python(text)
    except ValidationError as error:
        problem = error.errors()[0]["msg"].partition(", unable")[0]
        raise ParameterError(problem.replace("Input ", "the value ")) from None


def _field(name: str, text: str) -> str:
    """Return the JSON of a further field, in a fixed spelling."""
    if name in _RESERVED_FIELDS or name in KEYS:
        raise ParameterError(f"{name!r} cannot be set: it is measured, or has its own parameter")
    try:
        # Python reads NaN and Infinity, which are no JSON.
        return json.dumps(json.loads(text), sort_keys=True, allow_nan=False)
    except ValueError:
        raise ParameterError(f"{text!r} is not JSON: a text needs quotes, '\"{text}\"'") from None


def _plain(value: float | str) -> str:
    """Return a value as a user would write it: 0, not 0.0."""
    return value if isinstance(value, str) else repr(value).removesuffix(".0")
