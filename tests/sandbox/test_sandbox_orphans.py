"""Programs and folders do not outlive the process that started them, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_upskill.sandbox.limits import Level
from pytest_upskill.sandbox.run import Sandbox, workspace
from tests.conftest import WriteSkill
from tests.sandbox_programs import every_level_and_off, is_gone, wait_for

# One stays in the group, one is nobody's child any more, and one has also left the session, where
# the level lets it.
OUTLIVE = "sleep {0} & (sleep {0} &) ; (setsid sleep {0} &) ; sleep {0}"
RUN = """
import sys
from pytest_upskill.sandbox.run import Sandbox, workspace
with workspace() as home:
    Sandbox(sys.argv[1]).run(["/bin/sh", "-c", sys.argv[2]], home)
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder for temporary files of this process and of those that it starts."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    return folder


@every_level_and_off
@pytest.mark.usefixtures("temporary")
@pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGKILL])
def test_programs_die_with_the_process_that_started_them(
    level: Level, kind: signal.Signals, marker: str
) -> None:
    script = OUTLIVE.format(marker)
    process = subprocess.Popen([sys.executable, "-c", RUN, level, script])
    wait_for(marker, 3 if level == "landlock" else 4)

    os.kill(process.pid, kind)
    process.wait()

    assert is_gone(marker)


@every_level_and_off
def test_nothing_a_program_starts_outlives_it(level: Level, marker: str) -> None:
    script = OUTLIVE.format(marker).removesuffix(f"sleep {marker}") + "sleep 0.3"

    with workspace() as home:
        outcome = Sandbox(level).run(["/bin/sh", "-c", script], home)

    assert outcome.ended == "exited"
    assert is_gone(marker)  # the kernel takes a moment to end a namespace


@pytest.mark.usefixtures("temporary")
def test_a_killed_pytest_leaves_no_answer_running(
    pytester: pytest.Pytester, write_skill: WriteSkill, marker: str
) -> None:
    answer = f"```python\nimport os\nos.system('{OUTLIVE.format(marker)}')\n```\n"
    run = {"run": {"language": "python", "code": "assert os"}}
    case = {"id": "stay", "input": "How do I stay?", "expected": run}
    write_skill(case, body=f"To stay, write:\n\n{answer}")
    options = ("--upskill-models", "offline", "--upskill-sandbox", "limits", "skills")
    with subprocess.Popen(
        [sys.executable, "-m", "pytest", "-p", "no:xdist", "-p", "no:anyio", *options],
        cwd=pytester.path,
        stdout=subprocess.DEVNULL,
    ) as process:
        wait_for(marker, 4)

        process.kill()

    assert is_gone(marker)


def test_a_folder_is_removed_however_deep_and_unreadable_it_is(temporary: Path) -> None:
    script = """
import os
for depth in range(1500):
    os.mkdir("d" * 20)
    os.chdir("d" * 20)
os.mkdir("unreadable")
open("unreadable/file", "w").close()
os.chmod("unreadable", 0)
"""
    with workspace() as home:
        subprocess.run([sys.executable, "-c", script], cwd=home.root / "tmp", check=True)

    assert list(temporary.iterdir()) == []
