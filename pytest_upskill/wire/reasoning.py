"""Reasoning that a model writes before its answer: kept and counted, never graded.

Models and servers mark it in three ways: content blocks or fields of their own, which the clients
read; a pair of tags around it at the start of the text; or the closing tag alone, where the chat
template has written the opening one (DeepSeek-R1, QwQ).
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
    """Return a completion whose text is the answer alone, what was before it in ``reasoning``."""
    reasoning, text = split_reasoning(completion.text)
    if text == completion.text:
        return completion
    joined = "\n\n".join(filter(None, (completion.reasoning, reasoning)))
    return replace(completion, text=text, reasoning=joined)


def split_reasoning(text: str) -> tuple[str, str]:
    """Split a text into the reasoning that it begins with and the answer.

    Reasoning that never ends is all there is: the answer is empty. Of an answer that has been
    split before nothing more is taken.
    """
    thoughts: list[str] = []
    while (found := _first_thought(text)) is not None:
        thought, text = found
        thoughts.append(thought)
    return "\n\n".join(filter(None, thoughts)), text


def _first_thought(text: str) -> tuple[str, str] | None:
    """Find the thought that a text begins with, and what follows it; None where it has none."""
    opening = _OPENING.match(text)
    if opening is None:
        tags = _TEMPLATE_OPENED.finditer(text)
        closing = next((tag for tag in tags if not _is_quoted(text, tag)), None)
        if closing is None or _opened_before(text, closing):
            return None
        return text[: closing.start()].strip(), text[closing.end() :].lstrip()
    start, end = _closing(text, opening)
    return text[opening.end() : start].strip(), text[end:].lstrip()


def _is_quoted(text: str, tag: re.Match[str]) -> bool:
    """Return whether a text speaks of a tag, as in a line of code."""
    before, after = text[: tag.start()][-1:], text[tag.end() :][:1]
    return before in _QUOTES and after in _QUOTES | {"\\"}


def _opened_before(text: str, closing: re.Match[str]) -> bool:
    """Return whether an answer opens the tag itself, somewhere after its beginning."""
    return closing[0].replace("/", "") in text[: closing.start()]


def _closing(text: str, opening: re.Match[str]) -> tuple[int, int]:
    """Return where the tag that closes a thought starts and ends; the end of the text without one.

    Thoughts may be nested. Where they are not balanced, because a thought mentions its own tag,
    the last closing tag counts.
    """
    name = opening[1] or opening[2]
    tags = rf"\[(/?){name}\]" if opening[2] else rf"<(/?){name}>"
    depth, last = 1, (len(text), len(text))
    for tag in re.compile(tags).finditer(text, opening.end()):
        depth += -1 if tag[1] else 1
        if tag[1]:
            last = tag.span()
        if depth == 0:
            break
    return last
