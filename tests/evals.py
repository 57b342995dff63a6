"""Read evals files in tests."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.cases.adapters import registry
from pytest_upskill.cases.skill import Case, plain_name
from pytest_upskill.cases.skill_files import SkillFolder
from pytest_upskill.cases.skill_md import SkillText
from pytest_upskill.cases.source.document import BadFile
from pytest_upskill.cases.to_cases import CaseMaker, FileCases
from pytest_upskill.checks.files import WorkspaceFile
from pytest_upskill.checks.judge import Judge

SAYS_HI = (Judge(statement="Says hi"),)
"""The checks of an answer of which a file says that it "Says hi"."""


def no_files(name: str) -> Sequence[WorkspaceFile]:
    raise AssertionError(name)


class InMemory(SkillFolder):
    """A skill without a folder on disk."""

    def __init__(self, name: str, read_files: Callable[[str], Sequence[WorkspaceFile]]) -> None:
        text = SkillText(name=name, text="", body_at=0, warnings=())
        super().__init__(Path(name), text, Path(name, "evals.json"))
        self._files_of = read_files

    def read_files(self, name: str, max_bytes: int = 0) -> tuple[WorkspaceFile, ...]:
        del max_bytes
        return tuple(self._files_of(name))


def skill(name: str, read_files: Callable[[str], Sequence[WorkspaceFile]] = no_files) -> InMemory:
    """Make a skill of one name."""
    return InMemory(name, read_files)


def given(case: Case) -> dict[str, str]:
    """Return the files of a case as a prompt has them."""
    return {file.name: file.prompt for file in case.files}


CSV = skill("csv")


def read(
    document: Any,
    *,
    suffix: str = ".json",
    owner: SkillFolder | None = CSV,
) -> FileCases:
    """Read a document of the skill ``csv``; ``tsv`` is beside it."""
    text = document if isinstance(document, str) else json.dumps(document, indent=1)
    near = {"csv": CSV, "tsv": skill("tsv")}
    path = Path(f"evals/evals{suffix}")
    reading = registry.read(path, text)
    if reading is None:
        raise registry.unfit()
    return CaseMaker(
        reading=reading,
        owner=owner,
        find=lambda name: near.get(plain_name(name)),
    ).file()


def read_one(**entry: Any) -> Case:
    """Read the only case of a file."""
    (case,) = read([{"prompt": "Say hi", **entry}]).cases
    return case


def problems(document: Any) -> list[str]:
    """List what a bad document is refused for."""
    with pytest.raises(BadFile) as caught:
        read(document)
    return [problem.at("f") for problem in caught.value.problems]
