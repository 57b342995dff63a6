"""Cut a source to a budget, and keep what is most informative.

1. What the user said, errors and the sections of documents come before the agent's words and calls,
   and these before results.
2. Of equals, the latest come first: what worked in the end.
3. A long one loses its middle: `WHOLE` characters of the first kind stay, fewer of the others.
4. What stays keeps its order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from pytest_upskill.teacher.sources.events import Event, Kind

WHOLE = 4000
"""Characters of an event of the most telling kinds that are kept."""

_RANKS: Mapping[Kind, tuple[int, int]] = MappingProxyType(
    {
        "user": (0, WHOLE),
        "error": (1, WHOLE),
        "text": (0, 12 * WHOLE),
        "assistant": (2, 1200),
        "call": (2, 1200),
        "result": (3, 300),
    }
)
"""Rank and most characters of each kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A source after cutting."""

    text: str
    left_out: Mapping[str, int]
    """How many events of each kind are left out."""
    shortened: int
    """How many events lost their middle."""


def cut(events: Sequence[Event], budget: int) -> Cut:
    """Cut events to a budget of characters; the module's description has the rules."""
    remaining, kept, shortened = budget, dict[int, str](), 0
    order = sorted(range(len(events)), key=lambda at: (_RANKS[events[at].kind][0], -at))
    for at in order:
        event = events[at]
        label = "" if event.kind == "text" else f"[{event.kind}] "
        room = min(_RANKS[event.kind][1], remaining - len(label))
        if room < min(len(event.text), _RANKS["result"][1]):
            continue
        text = label + _without_middle(event.text, room)
        shortened += len(event.text) > room
        kept[at] = text
        remaining -= len(text) + 2
    omitted = Counter(event.kind for at, event in enumerate(events) if at not in kept)
    return Cut(
        text="\n\n".join(kept[at] for at in sorted(kept)),
        left_out=MappingProxyType({str(kind): count for kind, count in omitted.items()}),
        shortened=shortened,
    )


def _without_middle(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    mark = f"\n[{len(text) - most} characters left out]\n"
    half = max(0, most - len(mark)) // 2
    return f"{text[:half]}{mark}{text[len(text) - half :]}"
