"""Separation of reasoning, which is recorded and counted but not graded, from the answer.

Models and servers mark reasoning in three ways: with separate content blocks or fields, which the
clients read; with a pair of tags at the start of the text; or with the closing tag alone, if the
chat template writes the opening one (DeepSeek-R1, QwQ).
"""

from __future__ import annotations

import re
from dataclasses import replace

from pytest_upskill.completion import Completion

_OPENING = re.compile(r"\s*(?:<(think|thinking|seed:think)>|\[(THINK)\])")
_TEMPLATE_OPENED = re.compile(r"</(?:seed:)?think>|\[/THINK\]")
"""The closing tags of chat templates that write the opening one."""

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

    Without a closing tag, the answer is empty. Splitting an answer again does not change it.
    """
    thoughts: list[str] = []
    while (thought_and_rest := _first_thought(text)) is not None:
        thought, text = thought_and_rest
        thoughts.append(thought)
    return "\n\n".join(filter(None, thoughts)), text


def _first_thought(text: str) -> tuple[str, str] | None:
    """Return the thought at the start of a text and the rest, None if there is no thought."""
    opening = _OPENING.match(text)
    if opening is None:
        tags = _TEMPLATE_OPENED.finditer(text)
        closing = next((tag for tag in tags if not _is_quoted(text, tag)), None)
        if closing is None or _opened_before(text, closing):
            return None
        return text[: closing.start()].strip(), text[closing.end() :].lstrip()
    start, end = _closing_span(text, opening)
    return text[opening.end() : start].strip(), text[end:].lstrip()


def _is_quoted(text: str, tag: re.Match[str]) -> bool:
    """Return whether a tag is in quotes, that is, the text mentions it."""
    before, after = text[: tag.start()][-1:], text[tag.end() :][:1]
    return before in _QUOTES and after in _QUOTES | {"\\"}


def _opened_before(text: str, closing: re.Match[str]) -> bool:
    """Return whether the opening tag of a closing tag comes before it."""
    return closing[0].replace("/", "") in text[: closing.start()]


def _closing_span(text: str, opening: re.Match[str]) -> tuple[int, int]:
    """Return start and end of the tag that closes a thought; without one, the end of the text.

    Thoughts may be nested. If tags are not balanced, because a thought mentions its own tag, the
    last closing tag counts.
    """
    name = opening[1] or opening[2]
    tags = rf"\[(/?){name}\]" if opening[2] else rf"<(/?){name}>"
    depth, span = 1, (len(text), len(text))
    for tag in re.compile(tags).finditer(text, opening.end()):
        depth += -1 if tag[1] else 1
        if tag[1]:
            span = tag.span()
        if depth == 0:
            break
    return span
