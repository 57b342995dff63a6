"""``pytest-upskill judge label``: a person labels one answer at a time at a terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.cases.judge_labels import KeyEntry, LabelsFile, load_labels, write_labels
from pytest_upskill.commands.judge import CANNOT_TELL, label_answers
from pytest_upskill.commands.main import main
from tests.screen import Screen

CODE = "Here:\n```python\ndef f():\n    return 1\n```\n" + "word " * 60


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two drawn answers, of two and of one statement."""
    entry = {"case": "a", "model": "m", "question": "Why?", "text": CODE.splitlines()}
    labels = [{"statement": each, "holds": None} for each in ("It is code.", "It is short.")]
    value: dict[str, Any] = {
        "format": 1,
        "case_file": "skill_meta.json",
        "drawn": "2026-11-22",
        "judge": "j",
        "served": [],
        "prompt": "0",
        "models": {"m": "m"},
        "cases": {"a": "0"},
        "cells": {},
        "answers": [{"id": 1, "labels": labels, **entry}, {"id": 2, "labels": labels[:1], **entry}],
    }
    file = LabelsFile.model_validate(value)
    key = {
        str(answer.id): KeyEntry(
            arm="with", judged=True, holds=[True] * len(answer.labels), prompt="", skill=""
        )
        for answer in file.answers
    }
    write_labels(tmp_path, file.model_copy(update={"key": key}))
    return tmp_path


def press(folder: Path, keys: str) -> list[tuple[bool | None, str]]:
    """Press keys, and return the labels that are saved then."""
    pressed: Iterator[str] = iter([*keys, "q"])
    label_answers(load(folder), folder / "judge_labels.json", lambda: next(pressed))
    return [(each.holds, each.why) for answer in load(folder).answers for each in answer.labels]


def load(folder: Path) -> LabelsFile:
    file = load_labels(folder)
    assert file is not None
    return file


@pytest.mark.parametrize(
    ("keys", "holds"),
    [
        ("y", [True, None, None]),
        ("yxn?", [True, False, None]),
        ("ynby", [True, True, None]),
        ("ynbyn", [True, True, False]),
    ],
)
def test_each_key_is_a_label_and_saved_at_once(
    folder: Path, keys: str, holds: list[bool | None]
) -> None:
    assert [label for label, _ in press(folder, keys)] == holds
    assert set(load(folder).key) == {"1", "2"}


def test_what_cannot_be_told_is_not_asked_again(folder: Path) -> None:
    press(folder, "?")

    assert press(folder, "ny") == [(None, CANNOT_TELL), (False, ""), (True, "")]


def test_arms_and_verdicts_stand_in_another_file(folder: Path) -> None:
    assert set(json.loads((folder / "judge_key.json").read_text("utf-8"))) == {"1", "2"}
    assert "arm" not in (folder / "judge_labels.json").read_text("utf-8")


def test_a_person_at_a_terminal_reads_code_and_presses_single_keys(folder: Path) -> None:
    screen = Screen(["pytest-upskill", "judge", "label", str(folder)], folder, columns=60, rows=40)
    try:
        screen.wait_for("[y] it holds")
        assert "  |     return 1" in screen.lines
        screen.type("y")
        screen.wait_for("Statement 2 of 2:")
        screen.type("q")
        after = screen.wait_for_the_end()
    finally:
        screen.close()

    assert any("the same command continues" in line for line in after)
    assert load(folder).answers[0].labels[0].holds


def test_without_a_terminal_nothing_is_asked(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["judge", "label", str(folder)]) == 4

    assert "needs a terminal" in capsys.readouterr().err
