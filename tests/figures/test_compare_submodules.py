"""Comparisons of skills that lie in a git submodule."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.conftest import Run, WriteSkill, budget_cases
from tests.figures.conftest import LENIENT
from tests.git_repository import commit_all, git

pytestmark = pytest.mark.needs("git")

SHARED = ("--upskill-models=offline", LENIENT, "shared")


@pytest.fixture
def bumped(
    repository: Path, write_skill: WriteSkill, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Bump a submodule, on the branch, to what its own main already holds."""
    write_skill(*budget_cases(5))
    origin = tmp_path_factory.mktemp("origin")
    shutil.copytree(repository / "skills" / "billing", origin / "billing")
    commit_all(origin)
    git(repository, "switch", "--quiet", "main")
    git(repository, "submodule", "--quiet", "add", str(origin), "shared")
    commit_all(repository)
    git(repository, "switch", "--quiet", "--create", "bump")
    skill = origin / "billing" / "SKILL.md"
    skill.write_text(skill.read_text("utf-8").replace("37", "a few"), "utf-8")
    commit_all(origin)
    git(repository / "shared", "pull", "--quiet", "origin", "main")
    return repository


@pytest.mark.parametrize("option", ["--upskill-compare=main", "--upskill-changed-since=main"])
def test_a_submodule_is_not_compared_with_a_ref_of_the_repository_around_it(
    bumped: Path, run_once: Run, option: str
) -> None:
    result = run_once(*SHARED, option)

    assert result.ret not in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}
    cure = "run pytest in it, or compare with a baseline"
    output = [*result.outlines, *result.errlines]
    pytest.LineMatcher(output).fnmatch_lines([f"*{bumped}/shared is a submodule, *: {cure}"])


@pytest.mark.parametrize("ignore", ["none", "all"])
def test_a_skill_that_contains_a_submodule_is_not_compared_and_has_no_tick(
    repository: Path,
    write_skill: WriteSkill,
    run_once: Run,
    tmp_path_factory: pytest.TempPathFactory,
    ignore: str,
) -> None:
    skill = write_skill(name="shipping")
    with (skill / "SKILL.md").open("a", encoding="utf-8") as text:
        text.write("\nSee references/api.md.\n")
    origin = tmp_path_factory.mktemp("origin")
    (origin / "api.md").write_text("It is 37 days.\n", "utf-8")
    commit_all(origin)
    module = "skills/shipping/references"
    git(repository, "submodule", "--quiet", "add", str(origin), module)
    git(repository, "config", "--file=.gitmodules", f"submodule.{module}.ignore", ignore)
    commit_all(repository)
    git(repository, "switch", "--quiet", "--create", "bump")
    (origin / "api.md").write_text("37\n", "utf-8")
    commit_all(origin)
    git(skill / "references", "pull", "--quiet", "origin", "main")
    with (repository / "skills" / "billing" / "SKILL.md").open("a", encoding="utf-8") as text:
        text.write("\nMore.\n")

    args = ("--upskill-models=offline", "--upskill-compare=branch", "--upskill-md=r.md", "skills")
    result = run_once(*args)

    why = "not compared: skills/shipping/references is a git submodule, *: compare with a baseline"
    result.stdout.fnmatch_lines([f"shipping on offline: {why}"])
    title = Path("r.md").read_text("utf-8").splitlines()[1]
    assert title.startswith("### \u2754")
    assert "not everything was compared" in title


def test_a_run_within_a_submodule_is_about_that_repository(
    bumped: Path, run_once: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(bumped / "shared")

    result = run_once(*SHARED[:-1], "--upskill-compare=origin/main")

    result.stdout.fnmatch_lines(["billing on offline: unchanged since origin/main (*)*"])
