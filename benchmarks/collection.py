"""Collect 10,000 cases of 2,000 skills, and as many parametrized tests of plain pytest.

Run: python benchmarks/collection.py [--skills 2000] [--rounds 5]. Each is timed in turns on one
machine, every time in a fresh process without caches or pytest-xdist; medians of its CPU time are
compared, as others may be busy on the machine. Each case makes two items, one in each arm: 20,000
of them against 10,000 tests. Four floors, of pytest without this plugin: all tests in one file,
collected, and run as well; in as many files and folders as there are skills; and as many empty
items of as many files as a ``conftest.py`` makes without reading any.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

CASES = 5
"""Cases of each skill."""

EMPTY_ITEMS = """
import pytest

class Case(pytest.Item):
    def runtest(self):
        pass

class Cases(pytest.File):
    def collect(self):
        for number in range(%d):
            yield Case.from_parent(self, name=f"case-{number}")

def pytest_collect_file(file_path, parent):
    if file_path.name == "skill_meta.json":
        return Cases.from_parent(parent, path=file_path)
"""
"""A plugin that does nothing else."""

PROSE = "A sentence of a skill that says what to do with a file of values and why. " * 30


def main() -> None:
    """Print medians, and their ratios to the first two: tests collected, and tests run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--skills", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        empty = write_skills(root / "empty", options.skills, write_meta)
        (empty / "conftest.py").write_text(EMPTY_ITEMS % (2 * CASES))
        without = ("-p", "no:upskill")
        plain, ours = ("--collect-only", *without), ("--collect-only", "--upskill-models=offline")
        tests = write_tests(root / "tests", files=1, each=options.skills * CASES)
        folders = {
            "parametrized tests": (tests, plain),
            "such tests, collected and run": (tests, without),
            "such tests in as many files as skills": (
                write_tests(root / "files", files=options.skills, each=CASES),
                plain,
            ),
            "cases made of nothing, by as many files": (empty, plain),
            "cases in skill_meta.json": (
                write_skills(root / "meta", options.skills, write_meta),
                ours,
            ),
            "cases in evals/evals.json": (
                write_skills(root / "evals", options.skills, write_evals),
                ours,
            ),
        }
        seconds: dict[str, list[float]] = {kind: [] for kind in folders}
        for _ in range(options.rounds):
            for kind, (folder, arguments) in folders.items():
                seconds[kind].append(cpu_time(folder, arguments))
    medians = {kind: statistics.median(times) for kind, times in seconds.items()}
    collected, run, *_ = medians.values()
    for kind, median in medians.items():
        ratios = f"x {median / collected:.2f} of collected, x {median / run:.2f} of run"
        print(f"{options.skills * CASES:,} {kind}: {median:.2f} s, {ratios}")


def cpu_time(folder: Path, arguments: Sequence[str]) -> float:
    """Return the CPU time of one pytest, in seconds."""
    command = [sys.executable, "-m", "pytest", "-qq", *arguments]
    start = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [*command, "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:anyio"],
        cwd=folder,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": ""},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    return end.ru_utime + end.ru_stime - start.ru_utime - start.ru_stime


def write_tests(folder: Path, *, files: int, each: int) -> Path:
    """Write files with one parametrized test each, every one in a folder of its own."""
    for number in range(files):
        (folder / f"suite_{number}").mkdir(parents=True)
        (folder / f"suite_{number}" / f"test_suite_{number}.py").write_text(
            "import pytest\n\n\n"
            f"@pytest.mark.parametrize('number', range({each}))\n"
            "def test_number(number):\n    assert number >= 0\n"
        )
    return folder


def write_skills(folder: Path, count: int, write: Callable[[Path, int], None]) -> Path:
    """Write skills whose case files ``write`` writes."""
    for number in range(count):
        skill = folder / f"skill-{number}"
        skill.mkdir(parents=True)
        front = f"---\nname: skill-{number}\ndescription: Says what to do with values.\n---\n"
        (skill / "SKILL.md").write_text(f"{front}\n# Skill {number}\n\n{PROSE}\n")
        write(skill, number)
    return folder


def write_meta(skill: Path, number: int) -> None:
    """Write cases as ``skill_meta.json``."""
    cases = [
        {
            "id": f"case-{index}",
            "input": f"What is value {index} of skill {number}?",
            "expected": {"contains": [f"value-{index}", "skill"], "regex": r"\d+"},
        }
        for index in range(CASES)
    ]
    (skill / "skill_meta.json").write_text(json.dumps({"cases": cases}, indent=2))


def write_evals(skill: Path, number: int) -> None:
    """Write cases as ``evals/evals.json``."""
    evals = [
        {
            "id": index,
            "prompt": f"What is value {index} of skill {number}?",
            "expected_output": "The value.",
            "assertions": [
                {"text": "Names it", "type": "contains_phrase", "phrase": f"value-{index}"},
                {"text": "Counts", "type": "regex", "pattern": r"\d+"},
            ],
        }
        for index in range(CASES)
    ]
    (skill / "evals").mkdir()
    text = json.dumps({"skill_name": skill.name, "evals": evals}, indent=2)
    (skill / "evals" / "evals.json").write_text(text)


if __name__ == "__main__":
    main()
