"""The embedded model ``offline``, which quotes its context and needs no key and no network.

It is not a language model. It shows whether the skill contains the facts that a case asks for, and
makes it possible to try all other parts of a run, including compilers, at no cost.
"""

import html
import math
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from pytest_upskill.models.completion import Completion, ToolCall
from pytest_upskill.models.request import ProviderError, Request
from pytest_upskill.project.frontmatter import body_of

EXCERPT = "Offline model: an excerpt of the context, not a generated answer."
NO_REFERENCE = (
    "Offline model: no reference for this in the context: none of its passages has words in "
    "common with the question."
)
NO_SKILL = "Offline model: no skill's description has two words in common with this."

_CHARS_PER_TOKEN = 4
_PASSAGE_CHARS = 800
_ANSWER_CHARS = 2400
_MIN_SCORE = 0.5
"""Minimum score of a further passage, as a share of the best score."""
_MIN_SHARED = 2
"""Minimum number of words that a skill shares with the question, as one may be chance; likewise a
passage, if any has as many."""

_SKILL = re.compile(r'\s*<skill name="[^"\n]*">\n(.*)</skill>\s*', re.DOTALL)
_LISTED_SKILL = re.compile(
    r"  <skill>\n    <name>([^<]*)</name>\n    <description>([^<]*)</description>\n  </skill>"
)
_FILE = re.compile(r'\n\n<file name="([^"\n]*)">\n(.*?)\n</file>', re.DOTALL)
_WORD = re.compile(r"[^\W_]{2,40}|\bc\b(?:\+\+)?")
"""Words of two letters or more, and the languages C and C++."""
_INFLECTED = re.compile(r"(.{3,}?)(?:(?<=([bdgmnprt]))\2)?(?:ing|ies|ed|er|ly|s|e|y)+")
_STOPWORDS = frozenset(
    _WORD.findall(
        "about all also am an and any are as at be been but by can could did do does for from get "
        "give had has have her here him his how if in into is it its just know let like make many "
        "may me much my need no not now of on one only or our out please put reply see she should "
        "show so some tell than that the their them then there these they this those to up us use "
        "used using want was we were what when where which who why will with would write yes you "
        "your"
    )
)
_HEADING = re.compile(r"(#{1,6})\s+\S")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})\s*")
_BLOCK = re.compile(r"\s*$|\s*([-*+]|\d+[.)])\s")
"""An empty line, or the first line of an item of a list."""


class OfflineClient:
    """A client that answers with passages of the skill and the files that match the question.

    A passage is a part of the text under one heading, up to and including a code block. Its score
    is the sum, over the question's words in it, of ``log(1 + passages / passages with the word)``,
    doubled for words in its headings. Words are compared without inflection. A passage that shares
    only one word with the question is quoted if none shares two.

    The question is not repeated, so that no check can pass because of it. The number of tokens is
    a quarter of the number of characters, rounded up.
    """

    async def complete(self, request: Request) -> Completion:
        """Return the passages that match the question best, or a call of the best skill.

        Raises:
            ProviderError: The request offers tools, but no skills to choose from.
        """
        if request.tools:
            return _choose_skill(request)
        started = time.perf_counter()
        question = request.user.partition("\n\n<file name=")[0]
        block = _SKILL.fullmatch(request.skill)
        context = [*_passages(body_of(block[1] if block else request.skill))]
        for name, text in _FILE.findall(request.user, len(question)):
            context += _passages(_file_markdown(name, text))
        answer = _answer(context, _stems(question))
        text = answer[: request.max_tokens * _CHARS_PER_TOKEN]
        return Completion(
            text=text,
            input_tokens=_tokens(request.system + request.user),
            output_tokens=_tokens(text),
            stop_reason="end" if text == answer else "max_tokens",
            served_model="offline",
            latency_s=time.perf_counter() - started,
        )

    async def aclose(self) -> None:
        """Do nothing: there are no connections."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Passage:
    text: str
    """Markdown with the headings above the passage."""
    stems: frozenset[str]
    """Stems of its words, including those of its headings."""
    topic: frozenset[str]
    """Stems of the words in its headings."""


def _choose_skill(request: Request) -> Completion:
    """Return a call of the skill whose name and description share most words with the question.

    Words have the same weights as in the search for passages. A skill must share two words with the
    question, unless the question has only one.

    Raises:
        ProviderError: There are no skills to choose from.
    """
    skills = _catalogue(request.skill)
    if not skills:
        raise ProviderError(f"{request.model.label}: the embedded model calls no tools")
    best = _best_passages(skills, _stems(request.user))
    return Completion(
        text="" if best else NO_SKILL,
        tool_calls=(ToolCall(name="skill", arguments={"name": best[0].text}),) if best else (),
        input_tokens=_tokens(request.system + request.user),
        output_tokens=_tokens(best[0].text if best else NO_SKILL),
        served_model="offline",
    )


@lru_cache(maxsize=64)  # Most requests have equal catalogues.
def _catalogue(block: str) -> tuple[_Passage, ...]:
    """Return the skills of a catalogue as passages, whose texts are the names."""
    skills = (map(html.unescape, match.groups()) for match in _LISTED_SKILL.finditer(block))
    return tuple(
        _Passage(text=name, stems=_stems(f"{name} {description}"), topic=_stems(name))
        for name, description in skills
    )


def _tokens(text: str) -> int:
    return math.ceil(len(text) / _CHARS_PER_TOKEN)


def _file_markdown(name: str, text: str) -> str:
    """Return an attached file as Markdown; a file in another format becomes a code block."""
    _, _, suffix = name.rpartition(".")
    if suffix.lower() in {"md", "markdown"}:
        return f"# {name}\n\n{text}"
    fence = "`" * (1 + max(2, *(len(run) for run in re.findall("`+|$", text))))
    return f"# {name}\n\n{fence}{suffix}\n{text.rstrip()}\n{fence}"


@lru_cache(maxsize=256)  # A skill is the same in all of its cases.
def _passages(markdown: str) -> tuple[_Passage, ...]:
    return tuple(
        _Passage(
            text="\n\n".join([*headings, text]),
            stems=_stems(" ".join([*headings, text])),
            topic=_stems(" ".join(headings)),
        )
        for headings, text in _sections(markdown)
        if text
    )


def _sections(markdown: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the parts of a text, which end at a heading, a code block or a maximum length.

    Each has the headings above it.
    """
    headings: dict[int, str] = {}
    part, fence = "", ""
    for line in markdown.splitlines():
        heading = None if fence else _HEADING.match(line)
        is_full = len(part) > _PASSAGE_CHARS and not fence and _BLOCK.match(line)
        if heading or is_full:
            yield tuple(headings.values()), part.strip("\n")
            part = ""
        if heading:
            depth = len(heading[1])
            headings = {d: text for d, text in headings.items() if d < depth} | {depth: line}
            continue
        part += f"{line}\n"
        mark = _FENCE.match(line)
        if fence and mark and mark[1].startswith(fence) and mark.end() == len(line):
            yield tuple(headings.values()), part.strip("\n")
            part = fence = ""
        elif mark and not fence:
            fence = mark[1]
    yield tuple(headings.values()), part.strip("\n")


def _stems(text: str) -> frozenset[str]:
    """Return the words of a text without inflection and without stop words."""
    words = set(_WORD.findall(text.lower())) - _STOPWORDS
    return frozenset(match[1] if (match := _INFLECTED.fullmatch(word)) else word for word in words)


def _best_passages(
    passages: Sequence[_Passage], question: frozenset[str], *, needed: int = _MIN_SHARED
) -> list[_Passage]:
    """Return the passages that match the question, best first, without those far behind."""
    needed = min(needed, len(question)) or 1
    weights = {
        stem: math.log1p(len(passages) / spread)
        for stem in question
        if (spread := sum(stem in passage.stems for passage in passages))
    }
    scores = {
        # An exact sum: the order of a set is random and must not influence the ranking.
        passage: math.fsum(weights[stem] * (1 + (stem in passage.topic)) for stem in shared)
        for passage in passages
        if len(shared := question & passage.stems) >= needed
    }
    ranked = sorted(scores, key=lambda passage: scores[passage], reverse=True)
    return [passage for passage in ranked if scores[passage] >= _MIN_SCORE * scores[ranked[0]]]


def _answer(context: Sequence[_Passage], question: frozenset[str]) -> str:
    """Return an answer of the best passage and as many others as fit."""
    best = _best_passages(context, question) or _best_passages(context, question, needed=1)
    if not best:
        return NO_REFERENCE
    parts = [EXCERPT, best[0].text]
    room = _ANSWER_CHARS - len(best[0].text)
    for passage in best[1:]:
        if len(passage.text) <= room:
            parts.append(passage.text)
            room -= len(passage.text)
    return "\n\n".join(parts) + "\n"
