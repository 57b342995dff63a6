"""State files of a stranger's pull request, as a session of pytest meets them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_upskill.project.files import leads_out
from tests.conftest import Run, WriteSkill
from tests.git_repository import commit_all, git

RUN = ("--upskill-models", "offline", "--upskill-runs", "2")


def put(kind: str, file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    if kind == "pipe":
        os.mkfifo(file)
    else:
        file.symlink_to("/dev/zero")


@pytest.mark.parametrize(
    ("kind", "reason"),
    [("pipe", "not a regular file"), ("link", "a link leads out of the project")],
)
def test_a_baseline_that_is_no_file_stops_the_session_in_one_line(
    pytester: pytest.Pytester, run_once: Run, write_skill: WriteSkill, kind: str, reason: str
) -> None:
    (pytester.path / ".git").mkdir()
    folder = write_skill().relative_to(pytester.path)
    put(kind, pytester.path / ".upskill/baselines" / folder / "skill_meta.json/offline.json")

    result = run_once(*RUN, "--upskill-compare", "baseline")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (line,) = [line for line in result.errlines if line.startswith("ERROR: ")]
    assert reason in line


def test_a_folder_of_recordings_that_leads_out_is_refused(
    pytester: pytest.Pytester, run_once: Run, write_skill: WriteSkill
) -> None:
    outside = pytester.mkdir("home")
    project = pytester.mkdir("project")
    (project / ".git").mkdir()
    (project / ".upskill").mkdir()
    (project / ".upskill/cache").symlink_to(outside)
    write_skill().rename(project / "skill")
    os.chdir(project)

    result = run_once(*RUN, "--rootdir", project, project)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (line,) = [line for line in result.errlines if line.startswith("ERROR: ")]
    assert line.endswith(f"a link leads out of the project: name {outside} itself")
    assert leads_out(project / ".upskill/cache") == outside
    assert list(outside.iterdir()) == []


def test_a_report_is_not_written_through_a_link_out_of_the_project(
    pytester: pytest.Pytester, run_once: Run, write_skill: WriteSkill
) -> None:
    write_skill()
    (pytester.path / ".git").mkdir()
    victim = pytester.path.parent / "victim"
    victim.write_text('{"sessions": []}', "utf-8")
    (pytester.path / "r.json").symlink_to(victim)

    result = run_once(*RUN, "--upskill-json", "r.json")

    result.stdout.fnmatch_lines(["*r.json*a link leads out of the project*"])
    assert victim.read_text("utf-8") == '{"sessions": []}'


def test_a_skill_that_is_a_repository_itself_runs_no_program_of_its_settings(
    pytester: pytest.Pytester, run_once: Run, write_skill: WriteSkill
) -> None:
    folder = write_skill()
    commit_all(pytester.path)
    git(pytester.path, "branch", "base")
    git(folder, "init", "--quiet", "--bare", "inner")
    for path in (folder / "inner").iterdir():
        path.rename(folder / path.name)
    (folder / "config").write_text(
        "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n"
        '[filter "x"]\n\tclean = touch ran; cat\n',
        "utf-8",
    )
    (folder / ".gitattributes").write_text("* filter=x\n", "utf-8")
    inner = ("--git-dir", str(folder), "--work-tree", str(folder), "-c", "filter.x.clean=cat")
    git(folder, *inner, "add", "SKILL.md")
    git(folder, *inner, "commit", "--quiet", "--message", "x")
    git(folder, *inner, "branch", "--force", "base")
    (folder / "SKILL.md").write_text(
        f"{(folder / 'SKILL.md').read_text('utf-8')}\nMore.\n", "utf-8"
    )

    result = run_once(*RUN, "--upskill-compare", "base")

    assert not (folder / "ran").exists()
    result.stdout.fnmatch_lines(["*is a bare git repository inside of another*"])
