"""Random text for every reader of untrusted text.

``python -m tests.fuzz 10000`` gives each reader that many examples; the suite gives it fewer.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from unittest import mock

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_upskill.cases.adapters import registry
from pytest_upskill.cases.skill_md import read_skill_text
from pytest_upskill.cases.skill_meta.reader import read_cases
from pytest_upskill.cases.source.document import BadFile
from pytest_upskill.cases.to_cases import CaseMaker
from pytest_upskill.checks import CheckError
from pytest_upskill.checks.blocks import blocks, choose_units
from pytest_upskill.checks.files import WorkspaceFile
from pytest_upskill.checks.structure import ValueAtPath
from pytest_upskill.checks.text import NotRegex, Regex, compile_pattern
from pytest_upskill.grading.judge import read_judgement
from pytest_upskill.models import Completion
from tests.evals import skill

MOST_SECONDS = 5.0
"""CPU time that no example may take; a check by pattern is stopped after one second."""

CASES = """{"cases": [{"id": "a", "input": "Why?", "expected": {"contains": ["x"], "regex": "a+",
 "toml": {"a.b[0]": 1}, "compile": {"language": "cuda", "arch": "sm_90", "flags": ["-O2"]},
 "run": {"language": "python", "code": "assert 1"}, "json_schema": {"type": "object"}},
 "context": {"files": {"a.txt": "x"}}, "min_pass_rate": 0.5, "tags": ["t"]}],
 "gate": {"min_lift": 0.1}}"""
EVALS = """{"skill_name": "csv", "evals": [{"id": 1, "prompt": "Why?", "files": ["a.csv"],
 "expected_output": "x", "assertions": ["a", {"type": "regex", "pattern": "a+", "flags": "i"},
 {"type": "contains", "value": "x", "negate": true}], "should_trigger": true, "tags": ["t"]}]}"""
EVALS_YAML = """defaults: &d {prompt: Why?, assertions: [{contains: [x, 'y']}]}
evals:
  - <<: [*d, {id: !!int "1"}]
    expected: |
      text: 0x1F
"""
SKILL = '---\nname: csv\ndescription: >\n  Reads: CSV\nmetadata: {a: "b"}\n---\n# x\n'
ANSWER = "Text\n\n```cuda title=a.cu\n__global__ void k() {}\n```\n> ~~~yaml\n> a: &b [1]\n> ~~~\n"
PATTERN = r"(?i)^(a+)+[^b-d]{2,3}?(?P<n>\w|\d)(?=x)(?<!y)\1$"


EVALS_WORDS = """cases tests name query question expectations expected expected_behavior
expected_skill should_not_trigger trigger_evals negative must_contain required_regex must_include
expected_activation turns must_not ground_truth context rubric file check must forbidden_skills
contains_any matches_any not_regex json_schema contains:a a_b:c a==b"""


@contextmanager
def line_by_line() -> Iterator[None]:
    """Expect that a file is read, or refused by problems of one line each."""
    try:
        yield
    except BadFile as error:
        lines = [problem.at("f") for problem in error.problems]
        assert lines
        assert all(re.fullmatch(r"f(:\d+:\d+)?: [^\n]+", line) for line in lines)


def case_file(text: str) -> None:
    """Read a case file."""
    with line_by_line():
        read_cases(_of_file(text))


def evals_file(suffix: str) -> Callable[[str], None]:
    """Make a reader of one kind of evals files."""

    def read(text: str) -> None:
        with line_by_line():
            reading = registry.read(Path(f"evals{suffix}"), _of_file(text))
            if reading is None:
                return
            owner = skill("csv", lambda name: [WorkspaceFile(name=name, text="")])
            evals = CaseMaker(reading=reading, owner=owner, find=skill).file()
            names = [case.id for case in evals.cases]
            assert len(set(names)) == len(names)
            assert not any(re.search(r"::|\[|\]", name) for name in names)
            # Whatever is asked has something that must hold of the answer.
            asked = [case for case in evals.cases if not case.skip]
            assert all(case.input.strip() and (case.checks or case.trigger) for case in asked)

    read.__name__ = f"evals_file{suffix.replace('.', '_')}"
    return read


def skill_file(text: str) -> None:
    """Read a SKILL.md."""
    with line_by_line():
        read_skill_text(_of_file(text), folder="csv")


def answer(text: str) -> None:
    """Find the blocks of an answer, and read the data in them."""
    found = blocks(text)
    lines = text.replace("\r\n", "\n").replace("\r", "\n").count("\n") + 1
    assert all(1 < block.line <= lines + 1 for block in found)
    for language in ("cuda", "python", "json", ""):
        choose_units(found, language)
    for name in ("json", "toml", "yaml"):
        with suppress(CheckError):
            result = ValueAtPath(name=name, path="a.b[0].'c'", value={"a": [1]}).check(text)
            assert result.message.isprintable()


def pattern(text: str) -> None:
    """Search for a pattern, on half of the text, in the other half."""
    half = len(text) // 2
    try:
        compile_pattern(text[:half])
    except (re.error, RecursionError, OverflowError):
        return  # it is refused when the case file is read
    # Less than the second that a check has: many of these patterns would use it up.
    with mock.patch("pytest_upskill.checks.cpu_limit._SECONDS", 0.02):
        for kind in (Regex, NotRegex):
            with suppress(CheckError):
                kind(pattern=text[:half]).check(text[half:])


def judgement(text: str) -> None:
    """Read what a judge said."""
    with suppress(CheckError):
        read_judgement(Completion(text=text, input_tokens=1, output_tokens=1), [], "answer")


TARGETS: Mapping[Callable[[str], None], str] = {
    case_file: CASES,
    evals_file(".json"): EVALS,
    evals_file(".jsonl"): EVALS.replace("\n", "") + "\n" + EVALS.replace("\n", ""),
    evals_file(".yaml"): EVALS_YAML,
    skill_file: SKILL,
    answer: ANSWER,
    pattern: PATTERN * 2,
    judgement: '{"verdicts": [{"statement": 1, "holds": true, "quote": "answer"}]}',
}
"""Readers, and something like what they read."""


def texts(seed: str) -> st.SearchStrategy[str]:
    """Make texts of any kind, and the seed with parts replaced, doubled and left out."""
    anything = st.text(st.characters(codec=None), max_size=300)
    known = sorted(set(seed) | set("[]{}()\\\"'`~:,.-*+?|^$#&!\n\t \0"))
    hard = ["[" * 500, "a" * 500, "{" * 200, "\ud800", "\u202e", "9" * 5000, "```\n"]
    parts = st.text(st.sampled_from(known), max_size=40) | anything | st.sampled_from(hard)
    cuts = st.tuples(st.integers(0, len(seed)), st.integers(0, len(seed)), parts)
    mutated = st.lists(cuts, max_size=4).map(lambda cuts: _mutate(seed, cuts))
    return st.one_of(anything, mutated, _documents(seed).map(json.dumps))


def _documents(seed: str) -> st.SearchStrategy[object]:
    """Make JSON of the words of a seed."""
    words = [*re.findall(r"[\w:=]+", seed), "", " ", "(", "#", "a\nb"]
    if "evals" in words:
        words += EVALS_WORDS.split()
    keys = st.sampled_from(sorted(set(words)))
    leaves = st.none() | st.booleans() | st.integers(-2, 2) | st.floats(-9, 9) | keys
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=5),
        max_leaves=30,
    )


def run(target: Callable[[str], None], examples: int) -> float:
    """Try a reader on many texts; return the most CPU time that one took, in seconds."""
    longest = 0.0

    @settings(
        max_examples=examples, deadline=None, database=None, suppress_health_check=[*HealthCheck]
    )
    @given(texts(TARGETS[target]))
    def once(text: str) -> None:
        nonlocal longest
        start = time.process_time()
        target(text)
        longest = max(longest, time.process_time() - start)

    once()
    return longest


def _of_file(text: str) -> str:
    """Drop the characters that no file in UTF-8 can contain."""
    return text.encode("utf-8", "ignore").decode()


def _mutate(seed: str, cuts: list[tuple[int, int, str]]) -> str:
    for start, end, part in cuts:
        seed = seed[:start] + part + seed[end:]
    return seed


if __name__ == "__main__":
    for target in TARGETS:
        longest = run(target, int(sys.argv[1]))
        line = f"{target.__name__}: {sys.argv[1]} examples, at most {longest:.2f} s of CPU each"
        print(line)  # noqa: T201  it is a script
