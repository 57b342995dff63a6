"""The folder of the project, and settings of it that do not apply."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from pytest_upskill.project.files import project_folder
from tests.conftest import Run, WriteSkill, recordings
from tests.loopback import Loopback

OFFLINE = "--upskill-models=offline"


@pytest.fixture
def repository(write_skill: WriteSkill, pytester: pytest.Pytester) -> Path:
    write_skill()
    (pytester.path / ".git").mkdir()
    return pytester.path


def test_a_run_in_a_folder_of_the_project_finds_its_recordings(
    repository: Path, run: Run, loopback: Loopback, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("--upskill-models", model)
    sent, recorded = len(loopback.requests), recordings(repository)
    monkeypatch.chdir(repository / "skills")

    result = run("--upskill-models", model)

    assert result.ret == pytest.ExitCode.OK
    assert len(loopback.requests) == sent
    assert recordings(repository) == recorded != []
    assert not (repository / "skills" / ".upskill").exists()


def test_a_baseline_is_the_same_from_every_folder(
    repository: Path, run_once: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = (OFFLINE, "--upskill-runs=5")
    monkeypatch.chdir(repository / "skills" / "billing")
    run_once(*runs, "--upskill-baseline-update")
    (baseline,) = (repository / ".upskill").glob("baselines/**/offline.json")
    text = baseline.read_text("utf-8")
    monkeypatch.chdir(repository)

    result = run_once(*runs, "--upskill-compare=baseline")
    again = run_once(*runs, "--upskill-baseline-update")

    result.stdout.fnmatch_lines(
        ["billing on offline: +0 points * (1/1 with the skill, baseline 1/1*)"]
    )
    result.stdout.no_fnmatch_line("*is gone*")
    again.stdout.fnmatch_lines(["baseline of billing on offline: * is up to date"])
    assert baseline.read_text("utf-8") == text
    assert baseline.parent == repository / ".upskill/baselines/skills/billing/skill_meta.json"


@pytest.mark.parametrize(
    ("folders", "links", "found"),
    [
        ([".git"], {}, "."),
        ([], {}, "sub/skills/csv"),
        ([".git", "sub/.upskill"], {}, "sub"),
        ([".git", "sub/.git"], {}, "sub"),
        ([".upskill", "sub/.git"], {}, "sub"),
        ([".git"], {"sub/.git": "gitdir: ../.git/modules/sub"}, "sub"),
        ([".git", ".upskill"], {"sub/.git": "gitdir: /repo/.git/worktrees/sub"}, "sub"),
    ],
    ids=[
        "the root of the repository",
        "no repository",
        "the nearest that has one",
        "the inner repository",
        "nothing around a repository",
        "a submodule alone",
        "a worktree",
    ],
)
def test_the_project_is_what_has_dot_upskill_else_the_repository(
    tmp_path: Path, folders: Sequence[str], links: dict[str, str], found: str
) -> None:
    start = tmp_path / "sub" / "skills" / "csv"
    for folder in (start, *(tmp_path / name for name in folders)):
        folder.mkdir(parents=True, exist_ok=True)
    for name, text in links.items():
        (tmp_path / name).write_text(text, "utf-8")

    assert project_folder(start) == tmp_path / found
