"""The texts and results of tools in a request of an agent, in any wire format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping


def texts_in(value: object) -> Iterator[str]:
    """Yield every text in a JSON value, however deep, except names of fields."""
    return (part for part in _parts(value) if isinstance(part, str))


def results_in(value: object) -> Iterator[tuple[str, str]]:
    """Yield pairs of the id of a call and its result, a result from the texts in it."""
    for part in _parts(value):
        if isinstance(part, Mapping) and "arguments" not in part:
            call_id = part.get("tool_use_id") or part.get("call_id")
            if call_id:
                result = part.get("output") or part.get("content")
                yield str(call_id), "\n".join(texts_in(result))


def _parts(value: object) -> Iterator[object]:
    """Yield a JSON value and all values in it, in their order."""
    pending = [value]
    while pending:
        part = pending.pop()
        yield part
        if isinstance(part, Mapping):
            pending += reversed([*part.values()])
        elif isinstance(part, list):
            pending += reversed(part)
