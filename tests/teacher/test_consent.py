"""Typed consent: nothing is sent or changed before somebody at a terminal has said yes."""

from __future__ import annotations

import os
import pty
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TextIO, cast

import pytest

from pytest_upskill.answers.resources import WorkError
from pytest_upskill.teacher.engine import Engine
from pytest_upskill.teacher.files import (
    Change,
    Consent,
    encoded_like,
    replace_files,
    with_cases,
    with_train_marks,
)
from pytest_upskill.teacher.improve import apply_changes
from tests.git_repository import commit_all
from tests.loopback import Received, Reply
from tests.screen import PATIENCE_S, Screen
from tests.teaching import LACKING, TRAIN, Depot, adding, line

CTRL_D = b"\x04"


@pytest.fixture
def keyboard() -> Iterator[tuple[int, TextIO]]:
    """A terminal: where to type, and where a program reads."""
    typed, read = pty.openpty()
    with os.fdopen(read, "r", encoding="utf-8") as terminal:
        yield typed, terminal
    os.close(typed)


@pytest.mark.parametrize(
    ("keys", "agrees"),
    [
        (b"y\n", True),
        (b" YES \n", True),
        (b"n\n", False),
        (b"\n", False),
        (b"yep\n", False),
        (b"\xff\n", False),
        (CTRL_D, False),
    ],
)
def test_only_yes_is_consent(
    keyboard: tuple[int, TextIO],
    keys: bytes,
    agrees: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    typed, terminal = keyboard
    os.write(typed, b"y\n")  # typed before the question, and so no answer to it
    monkeypatch.setattr(
        "pytest_upskill.teacher.files.sys.stderr.flush", lambda: os.write(typed, keys)
    )

    assert Consent(yes=False, apply=False, terminal=terminal).ask_yes_no("Write this?") is agrees

    assert capsys.readouterr().err == "Write this? [y/N] "


@pytest.mark.needs("git")
def test_nobody_is_asked_about_a_file_with_uncommitted_changes(
    tmp_path: Path, keyboard: tuple[int, TextIO], capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "SKILL.md"
    file.write_text("old", "utf-8")
    commit_all(tmp_path)
    file.write_text("the author's", "utf-8")
    said: list[str] = []
    consent = Consent(yes=False, apply=False, terminal=keyboard[1])
    engine = cast("Engine", SimpleNamespace(consent=consent, say=said.append))

    changes = [Change(file=file, old=b"the author's", new=b"new")]
    assert not apply_changes(engine, "Write this to", changes)

    (why,) = said
    assert why.startswith(f"nothing was changed: {file}: has uncommitted changes: commit them")
    assert capsys.readouterr().err == ""


def test_a_repository_that_git_refuses_to_read_does_not_count_as_clean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git = tmp_path / "bin" / "git"
    git.parent.mkdir()
    git.write_text("#!/bin/sh\necho 'fatal: detected dubious ownership' >&2; exit 128\n", "utf-8")
    git.chmod(0o755)
    monkeypatch.setenv("PATH", f"{git.parent}{os.pathsep}{os.environ['PATH']}")
    file = tmp_path / "SKILL.md"
    file.write_text("old", "utf-8")

    with pytest.raises(WorkError, match=r"git does not trust .*: git config --global"):
        replace_files([Change(file=file, old=b"old", new=b"new")])

    assert file.read_text("utf-8") == "old"


def test_a_replaced_file_keeps_its_permissions_and_its_owner(tmp_path: Path) -> None:
    file = tmp_path / "SKILL.md"
    file.write_text("old", "utf-8")
    file.chmod(0o664)
    if os.getuid() == 0:
        os.chown(file, 1000, 1000)
    before = file.stat()

    replace_files([Change(file=file, old=b"old", new=b"new")])

    after = file.stat()
    assert (after.st_mode, after.st_uid) == (before.st_mode, before.st_uid)


def test_of_several_files_all_are_replaced_or_none(tmp_path: Path) -> None:
    first, second = tmp_path / "skill_meta.json", tmp_path / "SKILL.md"
    for file in (first, second):
        file.write_text("old", "utf-8")
    changes = [Change(file=file, old=b"old", new=b"new") for file in (first, second)]
    second.write_text("the author's", "utf-8")

    with pytest.raises(WorkError, match=r"SKILL\.md: has changed in the meantime: start again"):
        replace_files(changes)

    assert first.read_text("utf-8") == "old"


def test_line_ends_of_a_case_file_stay() -> None:
    old = (
        b'{\r\n  "cases": [\r\n'
        b'    {"id": "a", "input": "x", "expected": {"contains": "1"}}\r\n  ]\r\n}\r\n'
    )
    entry = {"id": "b", "input": "y", "expected": {"contains": "2"}}

    new = with_train_marks(with_cases(old, [entry]), ["a"])

    assert new.startswith(old.partition(b'{"id"')[0])
    assert b'{"train": true, "id": "a"' in new
    assert b"\n" not in new.replace(b"\r\n", b"")


def test_line_ends_stay() -> None:
    assert encoded_like(b"a\r\nb", "a\nc\n") == b"a\r\nc\r\n"
    assert encoded_like(b"a\nb", "a\nc") == b"a\nc"


def test_a_link_stays_one_and_the_file_that_it_leads_to_is_replaced(tmp_path: Path) -> None:
    link, target = tmp_path / "SKILL.md", tmp_path / "shared.md"
    target.write_text("old", "utf-8")
    link.symlink_to(target)

    replace_files([Change(file=link, old=b"old", new=b"new")])

    assert link.is_symlink()
    assert target.read_text("utf-8") == "new"
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    with pytest.raises(WorkError, match="has uncommitted changes"):
        replace_files([Change(file=link, old=b"new", new=b"newer")])


def test_a_typed_yes_writes_what_the_screen_has_shown(depot: Depot) -> None:
    seen, answer = threading.Event(), depot.loopback.answer
    depot.teach = lambda _, __: adding("".join(map(line, LACKING)))

    def slow(received: Received) -> Reply | str:
        seen.wait(PATIENCE_S)
        return answer(received)

    depot.loopback.answer = slow
    url = depot.loopback.openai_url
    models = [f"--model=t=openai:teacher@{url}", f"--eval-model=s=openai:student@{url}"]
    command = ["pytest-upskill", "refine", str(depot.skill), *models]

    screen = Screen(
        [*command, "--steps=1", "--runs=3", "--max-answers=400"], depot.folder, columns=60, rows=60
    )
    try:
        live = screen.wait_for("/16 answers")
        seen.set()
        screen.wait_for("Write this to ")
        diff = [shown for shown in screen.lines if shown.startswith(("+- ", "@@"))]
        screen.type("y\n")
        after = screen.wait_for_the_end()
    finally:
        screen.close()

    assert live.startswith("without the skill, for the page: 0/16 answers")
    assert len(live) < 60
    assert len(diff) == 1 + len(LACKING)
    assert any(shown.startswith("accepted:") for shown in after)
    assert not any("/16 answers" in shown for shown in after)
    assert line(0) in depot.text
    assert depot.decision()["applied"]
    assert len(depot.decision()["train"]) == len(TRAIN)
