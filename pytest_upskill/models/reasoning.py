"""Separation of reasoning, which is recorded and counted but not graded, from the answer.

Models and servers mark reasoning in three ways: with separate content blocks or fields, which the
clients read; with a pair of markers at the start of the text; or with the closing marker alone, if
the chat template writes the opening one (DeepSeek-R1, QwQ).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from pytest_upskill.models.completion import Completion

_TAG = re.compile(
    r"(?P<left>[<◁])(?P<name>think|thinking|thought|seed:think)(?P<right>[>▷])|\[(?P<upper>THINK)\]",
    re.IGNORECASE,
)
"""An opening tag. ``[think]`` is Mistral's, ``◁think▷`` Kimi's, the others are many models'."""

_HARMONY = r"(?:<\|start\|>assistant)?<\|channel\|>"
_TOKENS = (
    # gpt-oss, https://cookbook.openai.com/articles/openai-harmony
    (_HARMONY + r"(?:analysis|commentary)\b[^<]*<\|message\|>", r"<\|(?:end|return|call)\|>"),
    (r"<\|channel>thought\b", r"<channel\|>"),  # Gemma 4
    (r"<\|START_THINKING\|>", r"<\|END_THINKING\|>"),  # Command A
)
"""Special tokens around reasoning that a server left in the text."""

_CLOSED_ONLY = re.compile(
    r"(?P<left>[<◁])/(?P<name>think|seed:think)(?P<right>[>▷])|\[/(?P<upper>THINK)\]"
    r"|<channel\|>|<\|END_THINKING\|>|<\|end\|>(?=<\|start\|>assistant<\|channel\|>)",
    re.IGNORECASE,
)
"""The closing markers of chat templates that write the opening one."""

_ANSWER = re.compile(
    rf"\s*(?:{_HARMONY}final\b[^<]*<\|message\|>|<\|START_(?:RESPONSE|TEXT)\|>)(?P<answer>.*?)"
    r"(?:<\|(?:end|return|END_RESPONSE|END_TEXT)\|>\s*)?",
    re.DOTALL,
)
"""An answer between special tokens of its own."""

_QUOTES = frozenset("`'\"")


def without_reasoning(completion: Completion) -> Completion:
    """Return a completion with the reasoning in its text moved to ``reasoning``."""
    reasoning, text = split_reasoning(completion.text)
    if text == completion.text:
        return completion
    joined = "\n\n".join(filter(None, (completion.reasoning, reasoning)))
    return replace(completion, text=text, reasoning=joined)


def split_reasoning(text: str) -> tuple[str, str]:
    """Split a text into the reasoning at its start and the answer.

    Without a closing marker, the answer is empty. Splitting an answer again does not change it.
    """
    thoughts: list[str] = []
    while (thought_and_rest := _first_thought(text)) is not None:
        thought, text = thought_and_rest
        thoughts.append(thought)
    if marked := _ANSWER.fullmatch(text):
        text = marked["answer"]
    return "\n\n".join(filter(None, thoughts)), text


def _first_thought(text: str) -> tuple[str, str] | None:
    """Return the thought at the start of a text and the rest, None if there is no thought."""
    start = len(text) - len(text.lstrip())
    if tag := _TAG.match(text, start):
        closing = _closing_span(text, tag.end(), *_tag_patterns(tag))
        return _parts(text, tag.end(), *closing)
    for opening, closing_pattern in _TOKENS:
        if token := re.compile(opening).match(text, start):
            closing = _closing_span(text, token.end(), opening, closing_pattern)
            return _parts(text, token.end(), *closing)
    unquoted = (each for each in _CLOSED_ONLY.finditer(text) if not _is_quoted(text, each))
    closed = next(unquoted, None)
    if closed is None or _opened_before(text, closed):
        return None
    return _parts(text, 0, *closed.span())


def _parts(text: str, begin: int, end: int, rest: int) -> tuple[str, str]:
    return text[begin:end].strip(), text[rest:].lstrip()


def _tag_patterns(tag: re.Match[str]) -> tuple[str, str]:
    """Return the patterns of a tag, opening or closing, that open and close its thought."""
    if tag["upper"]:
        return rf"\[{tag['upper']}\]", rf"\[/{tag['upper']}\]"
    left, name, right = tag["left"], tag["name"], tag["right"]
    return rf"{left}{name}{right}", rf"{left}/{name}{right}"


def _is_quoted(text: str, marker: re.Match[str]) -> bool:
    """Return whether a marker is in quotes, that is, the text mentions it."""
    before, after = text[: marker.start()][-1:], text[marker.end() :][:1]
    return before in _QUOTES and after in _QUOTES | {"\\"}


def _opened_before(text: str, closing: re.Match[str]) -> bool:
    """Return whether the opening marker of a closing one comes before it."""
    if closing["name"] or closing["upper"]:
        openings: Iterator[str] = iter([_tag_patterns(closing)[0]])
    else:
        openings = (opening for opening, pattern in _TOKENS if re.match(pattern, closing[0]))
    return any(re.search(each, text[: closing.start()], re.IGNORECASE) for each in openings)


def _closing_span(text: str, begin: int, opening: str, closing: str) -> tuple[int, int]:
    """Return start and end of the marker that closes a thought; without one, the end of the text.

    Thoughts may be nested. If markers are not balanced, because a thought mentions its own, the
    last closing one counts.
    """
    depth, span = 1, (len(text), len(text))
    markers = re.compile(f"(?P<open>{opening})|{closing}", re.IGNORECASE)
    for marker in markers.finditer(text, begin):
        depth += 1 if marker["open"] else -1
        if not marker["open"]:
            span = marker.span()
        if depth == 0:
            break
    return span
