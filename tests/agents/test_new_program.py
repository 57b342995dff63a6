"""A further program that is an agent is a class and two rows."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agent_programs import bash, follow, needs_bubblewrap, skill
from tests.conftest import WriteSkill
from tests.loopback import Loopback
from tests.models.test_new_host import put
from tests.pages import CHECKOUT

ADAPTER = """
class Acme(Cli):
    name = "acme"
    tested_version = "9.9.9"
    skills_folder = ".claude/skills"
    skill_tool = ("Skill", "skill")
    shell = ("Bash", "command")
    command = "acme"
    package = "@acme/acme"

    def launch(self, request, base_url):
        environment = {"ANTHROPIC_BASE_URL": base_url, "ANTHROPIC_API_KEY": "none"}
        return Launch(arguments=("--model", request.model.name), environment=environment)


PROGRAMS"""


@pytest.mark.slow
@needs_bubblewrap
def test_a_new_program_is_a_class_and_two_rows(
    tmp_path: Path, loopback: Loopback, write_skill: WriteSkill, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "pytest_upskill"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(CHECKOUT / "pytest_upskill", package, ignore=ignored)
    programs = package / "agents" / "programs.py"
    put(programs, ')\n}\n"""The adapter', ', Acme())\n}\n"""The adapter')
    put(programs, "\nPROGRAMS", ADAPTER)
    put(package / "models" / "model.py", '"loop": (),', '"loop": (), "acme": ("messages",),')
    shutil.copy(CHECKOUT / "tests" / "fake_claude.py", tmp_path / "acme")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("UPSKILL_API_KEY", "a-key-of-this-test")
    expected = {"file_contains": {"sum.txt": "7"}, "tool_called": "bash"}
    folder = write_skill(
        {"id": "sum", "input": "Sum up.", "expected": expected, "workspace": {"a": "b"}}
    )
    follow(loopback, [skill(), bash("echo 7 > sum.txt"), "Done."])

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(folder),
         f"--rootdir={folder.parent}", f"--upskill-models=acme:small@{loopback.url}"],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip

    assert "billing on acme-small: offered / loaded in 1 / 1 of 1 runs" in done.stdout
    assert "3 passed" in done.stdout
