"""The process from which `tests.forked` forks runs of pytest.

It imports what they need, in such a run, as that one rewrites assertions.
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import sys
import tempfile
from pathlib import Path

import pytest

from tests.forked import serve
from tests.installed import read_installed_once

_CONFTEST = """\
import pytest_upskill.session.outgoing
from tests.imports import import_all

import_all()
pytest_upskill.session.outgoing._records()
"""
_SKILL = "---\nname: any\ndescription: Any. Use when any.\n---\nAny text.\n"
_CASES = '{"cases": [{"id": "any", "input": "Any?", "expected": {"contains": "any"}}]}'

read_installed_once(pytest.MonkeyPatch())

before = Path.cwd()
with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
    os.chdir(folder)
    Path("skills/any").mkdir(parents=True)
    Path("conftest.py").write_text(_CONFTEST, "utf-8")
    Path("skills/any/SKILL.md").write_text(_SKILL, "utf-8")
    Path("skills/any/skill_meta.json").write_text(_CASES, "utf-8")
    pytest.main(
        ["-p", "no:anyio", "-p", "no:hypothesispytest", "--upskill-models=offline", "skills"]
    )
    os.chdir(before)
# What was imported stays: no forked process need search it for garbage, and copy it by doing so.
gc.freeze()
serve(int(sys.argv[1]))
