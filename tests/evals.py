"""Read evals files in tests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from pytest_upskill.formats.evals import Evals, read_evals
from pytest_upskill.formats.problems import BadFile
from pytest_upskill.skill import Case


def no_files(name: str) -> Mapping[str, str]:
    raise AssertionError(name)


def read(document: Any, *, suffix: str = ".json") -> Evals:
    """Read a document of the skill ``csv``."""
    text = document if isinstance(document, str) else json.dumps(document, indent=1)
    return read_evals(text, suffix=suffix, skills={"csv"}, read_files=no_files)


def read_one(**entry: Any) -> Case:
    """Read the only case of a file."""
    (case,) = read([{"prompt": "Say hi", **entry}]).cases
    return case


def problems(document: Any) -> list[str]:
    """List what a bad document is refused for."""
    with pytest.raises(BadFile) as caught:
        read(document)
    return [problem.at("f") for problem in caught.value.problems]
