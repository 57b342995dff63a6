"""Separation of reasoning, which is recorded and counted but not graded, from the answer.

Models and servers mark reasoning in three ways: with separate content blocks or fields, which the
clients read; with a pair of markers at the start of the text; or with the closing marker alone, if
the chat template writes the opening one (DeepSeek-R1, QwQ).
"""

import re
from dataclasses import replace

from pytest_upskill.models.completion import Completion

_HARMONY = r"(?:<\|start\|>assistant)?<\|channel\|>"
_MARKERS = (
    (r"<(?P<name>think|thinking|thought|seed:think)>", r"</(?P=name)>"),
    (r"\[THINK\]", r"\[/THINK\]"),  # Mistral
    ("◁think▷", "◁/think▷"),  # Kimi
    # gpt-oss, https://cookbook.openai.com/articles/openai-harmony
    (_HARMONY + r"(?:analysis|commentary)\b[^<]*<\|message\|>", r"<\|(?:end|return|call)\|>"),
    (r"<\|channel>thought\b", r"<channel\|>"),  # Gemma 4
    (r"<\|START_THINKING\|>", r"<\|END_THINKING\|>"),  # Command A
)
"""What opens and closes reasoning in a text."""
_THOUGHTS = tuple(
    re.compile(rf"\s*{opening}(?P<thought>.*?)(?:{closing}\s*|\Z)", re.DOTALL | re.IGNORECASE)
    for opening, closing in _MARKERS
)
_OPENING = re.compile("|".join(opening for opening, _ in _MARKERS), re.IGNORECASE)

_CLOSED_ONLY = (
    r"</(?:seed:)?think>|\[/THINK\]|◁/think▷|<channel\|>|<\|END_THINKING\|>"
    r"|<\|end\|>(?=<\|start\|>assistant<\|channel\|>)"
)
"""The closing markers of chat templates that write the opening one."""
_CLOSING = re.compile(
    rf"[`'\"](?:{_CLOSED_ONLY})[`'\"\\]|(?P<unquoted>{_CLOSED_ONLY})\s*", re.IGNORECASE
)
"""One of them, or a mention of one in quotes."""

_ANSWER = re.compile(
    rf"\s*(?:{_HARMONY}final\b[^<]*<\|message\|>|<\|START_(?:RESPONSE|TEXT)\|>)(?P<answer>.*?)"
    r"(?:<\|(?:end|return|END_RESPONSE|END_TEXT)\|>\s*)?",
    re.DOTALL,
)
"""An answer between special tokens of its own."""


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
    for pattern in _THOUGHTS:
        if match := pattern.match(text):
            return match["thought"].strip(), text[match.end() :]
    closing = next((match for match in _CLOSING.finditer(text) if match["unquoted"]), None)
    if closing is None or _OPENING.search(text, 0, closing.start()):
        return None
    return text[: closing.start()].strip(), text[closing.end() :]
