"""``pytest-upskill eval``: prints the pytest command, and is that command from then on."""

from __future__ import annotations

import os
import subprocess

import pytest

from pytest_upskill.commands.main import main
from tests.conftest import WriteSkill
from tests.forked import forked_commands


@pytest.mark.parametrize(("wanted", "code"), [("37", 0), ("38", 1)])
def test_eval_prints_the_pytest_command_and_ends_as_it_does(
    wanted: str, code: int, write_skill: WriteSkill, pytester: pytest.Pytester
) -> None:
    question = "What is the retry budget of the billing service?"
    write_skill({"id": "budget", "input": question, "expected": {"contains": wanted}})

    process = subprocess.run(
        [forked_commands() / "pytest-upskill", "eval", "skills", "-m", "offline", "--", "-q"],
        cwd=pytester.path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert process.stdout.startswith(
        "$ pytest --upskill-models offline --upskill-log-runs -q skills\n"
    )
    assert process.returncode == code


@pytest.mark.usefixtures("skill")
def test_the_password_of_a_server_is_not_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda _, command: started.append(command))

    main(["eval", "skills", "-m", "m@http://me:secret@127.0.0.1/v1"])

    assert "secret" not in capsys.readouterr().out
    assert "m@http://me:secret@127.0.0.1/v1" in started[0]


@pytest.mark.usefixtures("skill")
def test_the_default_model_is_named_with_the_one_that_costs_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "execv", lambda *_: None)

    main(["eval", "skills"])

    said = capsys.readouterr().out
    assert "no model is named, so haiku runs: -m offline costs nothing" in said


@pytest.mark.parametrize("command", ["eval", "refine", "init"])
@pytest.mark.parametrize(("wrong", "meant"), [("skills/csw", "csv"), ("skils/csv", "skills")])
def test_a_misspelled_folder_is_answered_by_the_one_that_was_meant(
    command: str,
    wrong: str,
    meant: str,
    write_skill: WriteSkill,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_skill(name="csv")

    assert main([command, wrong]) == 4

    assert capsys.readouterr().err == (
        f"ERROR: {wrong}: no such file or folder (did you mean {meant!r}?): name a skill\n"
    )
