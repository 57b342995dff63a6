"""The texts and results of tools in a request of an agent, in any wire format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping


def texts_in(value: object) -> Iterator[str]:
    """Yield every text in a JSON value, except names of fields."""
    if isinstance(value, str):
        yield value
    else:
        for part in _parts(value):
            yield from texts_in(part)


def results_in(value: object) -> Iterator[tuple[str, str]]:
    """Yield pairs of the id of a call and its result, a result from the texts in it."""
    if isinstance(value, Mapping):
        call_id = value.get("tool_use_id") or value.get("call_id")
        if call_id and "arguments" not in value:
            result = value.get("output") or value.get("content")
            yield str(call_id), "\n".join(texts_in(result))
            return
    for part in _parts(value):
        yield from results_in(part)


def _parts(value: object) -> Iterable[object]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list) else ()
