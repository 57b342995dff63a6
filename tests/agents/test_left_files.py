"""The files that an agent left in its workspace."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from pytest_upskill.agents.workspace import TooMuchLeft, read_left
from pytest_upskill.checks.files import MAX_BYTES
from pytest_upskill.sandbox.limits import Level
from pytest_upskill.sandbox.run import Sandbox, SandboxError, workspace
from pytest_upskill.sandbox.shell import HOME, WORK, Shell
from tests.sandbox_programs import every_confining_level


def test_folders_deeper_than_python_can_recurse_do_not_end_the_run() -> None:
    with workspace() as home:
        left = home.root / "tmp"
        (left / "top.txt").write_text("there", "utf-8")
        deep = left.joinpath(*["d"] * 1200)
        subprocess.run(["mkdir", "-p", deep], check=True)
        (deep / "deepest.txt").write_text("here", "utf-8")

        found = read_left(left)

    assert [*found.files] == ["top.txt"]  # the other name is too long for a record


@every_confining_level
@pytest.mark.parametrize("folder", [WORK, HOME])
def test_a_folder_that_a_command_replaced_by_a_link_leads_nowhere(
    level: Level, folder: str, tmp_path: Path
) -> None:
    (tmp_path / "key").write_text("a secret", "utf-8")
    name = folder.rpartition("/")[2]
    swap = f'cd "${{TMPDIR%/*}}" && mv {name} old && ln -s {tmp_path} {name}'
    with workspace() as home:
        shell = Shell(Sandbox(level), home, {})
        assert shell.bash(swap).succeeded
        said = ""
        with suppress(SandboxError):
            said = shell.bash('cd "$HOME"; cat key; cat /workspace/key; echo x > new').output
        left = read_left(home.root / folder)

    assert "a secret" not in said
    assert left.files == {}
    assert [file.name for file in tmp_path.iterdir()] == ["key"]


def test_pipes_links_and_odd_names_are_left_out(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/etc/passwd")
    (tmp_path / "folder").symlink_to("/etc")
    for odd in ("a\nb", "c\\d"):
        (tmp_path / odd).write_text("x", "utf-8")
    kept = [".env", "data (1).csv", "good.txt", "hard.txt", "über.txt", "[id]/page.tsx"]
    (tmp_path / "[id]").mkdir()
    for name in set(kept) - {"hard.txt"}:
        (tmp_path / name).write_text("x", "utf-8")
    (tmp_path / "hard.txt").hardlink_to(tmp_path / "good.txt")

    left = read_left(tmp_path)

    assert [*left.files] == sorted(kept)
    assert set(left.left_out) == {
        *(f"{name} (a link or no regular file)" for name in ("folder", "link", "pipe")),
        *("a\\nb (its name)", "c\\d (its name)"),
    }


def test_a_repository_counts_towards_no_limit_of_files(tmp_path: Path) -> None:
    (tmp_path / "sub/.git/objects").mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    (tmp_path / "a.txt").write_text("x", "utf-8")
    (tmp_path / "sub/.git/objects/large").write_bytes(bytes(MAX_BYTES))
    (tmp_path / ".git/HEAD").write_text("ref", "utf-8")

    left = read_left(tmp_path)

    assert [*left.files] == ["a.txt"]
    assert (left.repository, left.left_out) == ({}, (".git (too large)",))


def test_more_entries_than_are_looked_at_are_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_upskill.agents.workspace._MAX_ENTRIES", 2)
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)

    with pytest.raises(TooMuchLeft, match="more than 2 entries"):
        read_left(tmp_path)
