"""A new check of text is its class, a field of the case file, and the schema made from that."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.pages import CHECKOUT

CLASS = '''
from dataclasses import dataclass
from typing import ClassVar

from pytest_upskill.checks.text import TextCheck, failed, passed


@dataclass(frozen=True, slots=True)
class MinWords(TextCheck):
    """A check that the answer has enough words."""

    name: ClassVar[str] = "min_words"
    for_teacher = "the least number of words"

    count: int

    def check(self, text):
        enough = len(text.split()) >= self.count
        return (passed if enough else failed)(self.name, f" {self.count}")
'''
FIELD = '''
    min_words: Annotated[int, Makes(MinWords, lambda count: [MinWords(count)])] = 0
    """Least number of words of the answer."""
'''
USE = """
import json

from pytest_upskill.cases.skill_meta.reader import read_cases
from pytest_upskill.cases.source.document import BadFile
from pytest_upskill.teacher.cases import KEYS
from tests.shipped.schemas import case_schema

def read(key):
    return read_cases(json.dumps({"cases": [{"input": "Hi", "expected": {key: 2}}]}))

((case,), _) = read("min_words")
print(*(check.check(text).passed for check in case.checks for text in ("one", "one two")))
try:
    read("mn_words")
except BadFile as error:
    print(error.problems[0].what)
print('"min_words" (the least number of words)' in KEYS)
print("Least number of words of the answer." in case_schema())
"""


def test_a_new_check_is_a_class_and_a_field(tmp_path: Path) -> None:
    package = tmp_path / "pytest_upskill"
    shutil.copytree(
        CHECKOUT / "pytest_upskill", package, ignore=shutil.ignore_patterns("__pycache__")
    )
    (package / "checks" / "min_words.py").write_text(CLASS, "utf-8")
    fields = package / "cases" / "skill_meta" / "expected.py"
    below = "\n\ndef _text_as"
    text = fields.read_text("utf-8").replace(below, f"{FIELD}{below}")
    imported = "\nfrom pytest_upskill.checks.min_words import MinWords"
    fields.write_text(text.replace("\nfrom pydantic", f"{imported}\nfrom pydantic", 1), "utf-8")

    done = subprocess.run(
        [sys.executable, "-c", USE],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (tmp_path, CHECKOUT)))},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "False True",
        "unknown key (did you mean 'min_words'?)",
        "True",
        "True",
    ]
