"""The disk that a program uses is measured wherever it hides it, and in time."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from pytest_upskill.sandbox.confinement import PYTHON, PYTHON_FOLDERS
from pytest_upskill.sandbox.limits import Level, Limits, Usage
from pytest_upskill.sandbox.run import Sandbox, workspace
from tests.sandbox_programs import HIDING_FILES, every_confining_level, hiding_files

_NOBODY = 65534


def _is_beyond(folder: Path, *, user: int | None = None) -> bool:
    """Return whether a folder holds more than 64 KiB or 100 files, as another user sees it."""
    child = os.fork()
    if child == 0:
        try:
            os.chdir(folder)  # whose parents may be closed to the user
            if user is not None:
                os.setuid(user)
            usage = Usage(Path(), os.getpid(), 1 << 16, 100)
            time.sleep(usage.due_in_s)
            os._exit(usage.is_beyond())
        finally:
            os._exit(2)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code < 2
    return bool(code)


@pytest.mark.parametrize("mode", [0o300, 0o400, 0])
def test_files_in_a_folder_that_cannot_be_read_are_measured(tmp_path: Path, mode: int) -> None:
    user = _NOBODY if os.getuid() == 0 else os.getuid()
    hidden = tmp_path / "a" / "hidden"
    hidden.mkdir(parents=True)
    (hidden / "file").write_bytes(b"x" * (1 << 17))
    for path in (tmp_path, hidden.parent, hidden, hidden / "file"):
        os.chown(path, user, -1)
    hidden.chmod(mode)

    assert _is_beyond(tmp_path, user=user)


def test_what_lies_too_deep_to_be_measured_is_too_much(tmp_path: Path) -> None:
    below = os.open(tmp_path, os.O_RDONLY)
    for _ in range(20):
        # 240 bytes: the kernel's limit of a path counts bytes.
        os.mkdir("\U0001d11e" * 60, dir_fd=below)
        deeper = os.open("\U0001d11e" * 60, os.O_RDONLY, dir_fd=below)
        os.close(below)
        below = deeper
    os.close(below)

    assert _is_beyond(tmp_path)


def test_the_closer_to_a_limit_the_sooner_usage_is_measured_again(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * (1 << 20))

    pauses = []
    for most_bytes, most_files in ((1 << 30, 20_000), (1 << 26, 20_000), (1 << 30, 100)):
        usage = Usage(tmp_path, os.getpid(), most_bytes, most_files)
        time.sleep(usage.due_in_s)
        assert not usage.is_beyond()
        pauses.append(usage.due_in_s)

    far, fewer_bytes, fewer_files = pauses
    assert far > 0.05
    assert fewer_bytes < 0.02
    assert fewer_files < 0.02


@every_confining_level
@pytest.mark.parametrize("way", HIDING_FILES)
def test_files_that_no_folder_shows_are_measured(level: Level, way: str) -> None:
    limits = Limits(wall_s=20, folder_bytes=32 << 20)
    with workspace() as home:
        script = hiding_files(way, str(home.root / "tmp"))
        program = [str(PYTHON), "-I", "-S", "-c", script]
        outcome = Sandbox(level).run(program, home, readable=PYTHON_FOLDERS, limits=limits)

    assert (outcome.ended, outcome.output) == ("files", "")
