"""Cases of evals files that ask for files, scripts and a workspace are cases for agents."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_upskill.checks.files import FileExists, InFile, ProcessCheck, WorkspaceFile
from tests.evals import read_one


@pytest.mark.parametrize(
    "key", ["expected_files", "expected_artifacts", "required_artifacts", "output_files"]
)
def test_files_to_be_produced_must_exist(key: str) -> None:
    case = read_one(assertions=["Says hi"], **{key: ["out/a.csv", "./b.md"]})

    assert case.checks[1:] == (FileExists(file="out/a.csv"), FileExists(file="b.md"))
    assert (case.skip, case.agent_key) == (None, "file_exists")


def test_scripts_and_references_are_reported_and_never_count() -> None:
    case = read_one(
        assertions=["Says hi"],
        expected_script="scripts/a.py",
        expected_references=["references/b.md"],
    )

    assert set(case.process) == {
        ProcessCheck(name="ran_script", file="scripts/a.py"),
        ProcessCheck(name="read_file", file="references/b.md"),
    }
    assert len(case.checks) == 1
    assert case.agent_key == "ran_script"


@pytest.mark.parametrize(
    "entry",
    [
        {"workspace": {"in.csv": "1"}},
        {"fixtures": {"in.csv": "1"}},
        {"setup": {"files": {"in.csv": "1"}}},
    ],
)
def test_a_workspace_is_what_the_agent_finds(entry: Any) -> None:
    case = read_one(assertions=["Says hi"], max_turns=7, **entry)

    assert case.workspace == (WorkspaceFile(name="in.csv", text="1"),)
    assert (case.skip, case.max_turns) == (None, 7)


@pytest.mark.parametrize(
    "setup",
    [
        {"files": {"in.csv": "1"}, "commands": ["make"]},
        {"files": [{"path": "in.csv", "content": "1"}], "commands": "make"},
        {"files": [{"path": "in.csv", "content": "1"}], "commands": [{"run": "make"}]},
    ],
)
def test_a_setup_gives_an_agent_files_and_runs_commands(setup: Any) -> None:
    case = read_one(assertions=["Says hi"], setup=setup)

    assert [(file.name, file.text) for file in case.workspace] == [("in.csv", "1")]
    assert (case.setup.commands, case.skip) == (("make",), None)


def test_a_setup_that_is_not_understood_skips_the_case() -> None:
    case = read_one(assertions=["Says hi"], setup={"docker": "x"})

    assert case.skip == "setup: docker is not known"


@pytest.mark.parametrize(
    ("assertion", "names"),
    [
        ({"type": "file_exists", "path": "a.csv"}, ["file_exists"]),
        ({"type": "file-produced", "value": "a.csv"}, ["file_exists"]),
        ({"type": "file_contains", "path": "a.csv", "value": ["x", "y"]}, ["file", "file"]),
        ({"type": "regex", "pattern": "x+", "file": "a.csv"}, ["file"]),
    ],
)
def test_an_assertion_on_a_file_is_a_check_of_the_workspace(
    assertion: Any, names: list[str]
) -> None:
    case = read_one(assertions=[assertion])

    assert [check.name for check in case.checks] == names
    assert all(check.file == "a.csv" for check in case.checks if isinstance(check, InFile))


def test_a_limit_of_turns_alone_needs_no_agent() -> None:
    assert read_one(assertions=["Says hi"], max_turns=3).agent_key is None
