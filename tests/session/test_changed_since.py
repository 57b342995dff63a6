"""``--upskill-changed-since`` runs only the skills that changed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pytest_upskill.report.exit_code import NOT_MEASURED
from tests.conftest import Run, WriteSkill
from tests.git_repository import commit_all, git

pytestmark = pytest.mark.needs("git")

ARGS = ("--upskill-models=offline", "--upskill-changed-since=main", "skills")


@pytest.fixture
def repository(write_skill: WriteSkill, pytester: pytest.Pytester) -> Path:
    write_skill()
    write_skill(name="shipping")
    commit_all(pytester.path)
    git(pytester.path, "switch", "--quiet", "--create", "branch")
    return pytester.path


def changed(repository: Path) -> Path:
    file = repository / "skills" / "shipping" / "SKILL.md"
    file.write_text(file.read_text("utf-8") + "\nOne more line.\n", "utf-8")
    return file


def test_only_the_skill_that_changed_is_run(repository: Path, run: Run) -> None:
    changed(repository)
    commit_all(repository)

    result = run(*ARGS)

    assert result.ret == pytest.ExitCode.OK
    assert result.parseoutcomes()["passed"] == 3
    result.stdout.fnmatch_lines(["shipping", "skipped 1 skill unchanged since main"])
    result.stdout.no_fnmatch_line("billing*")


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize("dry", [(), ("--upskill-dry-run",)])
def test_a_branch_that_changed_no_skill_is_green_and_says_so(
    run: Run, dry: tuple[str, ...]
) -> None:
    result = run(*ARGS, *dry)

    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        ["skipped 2 skills unchanged since main, so there is nothing to run"]
    )


@pytest.mark.parametrize("state", ["staged", "unstaged", "untracked", "removed"])
def test_a_change_need_not_be_committed(repository: Path, run_once: Run, state: str) -> None:
    if state == "untracked":
        (repository / "skills" / "shipping" / "new.md").write_text("New.\n", "utf-8")
    elif state == "removed":
        extra = repository / "skills" / "shipping" / "extra.md"
        extra.write_text("Extra.\n", "utf-8")
        git(repository, "switch", "--quiet", "main")
        commit_all(repository, "extra")
        git(repository, "switch", "--quiet", "--create", "later")
        extra.unlink()
    else:
        changed(repository)
        git(repository, *(("add", "--all") if state == "staged" else ("status",)))

    result = run_once(*ARGS)

    assert result.parseoutcomes() == {"passed": 3, "deselected": 2}


def test_what_changed_on_main_alone_is_left_out(repository: Path, run_once: Run) -> None:
    git(repository, "switch", "--quiet", "main")
    changed(repository)
    commit_all(repository)
    git(repository, "switch", "--quiet", "branch")

    result = run_once(*ARGS)

    result.stdout.fnmatch_lines(["skipped 2 skills unchanged since main, *"])


def test_a_selection_that_leaves_nothing_is_not_green(repository: Path, run_once: Run) -> None:
    changed(repository)

    result = run_once(*ARGS, "-k", "nothing")

    assert result.ret == NOT_MEASURED
    result.stdout.fnmatch_lines(
        ["exit code 75: nothing was measured: 1 changed skill is not fully measured"]
    )


@pytest.mark.usefixtures("repository")
def test_an_unknown_ref_is_refused_in_one_line_with_a_cure(run_once: Run) -> None:
    result = run_once("--upskill-models=offline", "--upskill-changed-since=origin/main", "skills")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: --upskill-changed-since: no commit is called 'origin/main' *: git fetch origin *"]
    )


def test_a_bad_ref_in_the_ini_file_is_refused_in_one_line(
    write_skill: WriteSkill, run: Run, pytester: pytest.Pytester
) -> None:
    write_skill()
    commit_all(pytester.path)
    pytester.makeini("[pytest]\nupskill_models = offline\nupskill_changed_since = nowhere")

    result = run("skills")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *no commit is called 'nowhere' in *: git fetch, *"])


@pytest.fixture
def with_query(repository: Path, write_skill: WriteSkill) -> Path:
    """Return a repository on a branch, in which a skill has a query."""
    git(repository, "switch", "--quiet", "main")
    write_skill({"id": "bill", "input": "Facts about billing.", "should_trigger": True})
    commit_all(repository, "a query")
    git(repository, "switch", "--quiet", "--create", "later")
    return repository


@pytest.mark.usefixtures("with_query")
def test_a_new_skill_runs_the_queries_of_the_others_that_it_could_take(
    run_once: Run, write_skill: WriteSkill
) -> None:
    write_skill(name="bills", description="Everything about billing and facts. Use for bills.")

    result = run_once(*ARGS, "-v")

    result.stdout.fnmatch_lines(["*billing/skill_meta.json::bill?offline-trigger] *"])
    result.stdout.no_fnmatch_line("*billing/skill_meta.json::*with_skill*")
    result.stdout.no_fnmatch_line("*shipping/skill_meta.json::*")


def test_a_skill_that_is_offered_again_runs_the_queries_that_it_could_take(
    with_query: Path, run_once: Run
) -> None:
    file = with_query / "skills" / "shipping" / "SKILL.md"
    text = file.read_text()
    git(with_query, "switch", "--quiet", "main")
    file.write_text(text.replace("---\n", "---\ndisable-model-invocation: true\n", 1))
    commit_all(with_query, "hidden")
    git(with_query, "switch", "--quiet", "--create", "offered")
    file.write_text(text)

    result = run_once(*ARGS, "-v")

    result.stdout.fnmatch_lines(["*billing/skill_meta.json::bill?offline-trigger] *"])


@pytest.mark.parametrize("change", ["edited", "deleted"])
@pytest.mark.parametrize("mode", ["replay", "auto"])
def test_a_skill_whose_recordings_were_changed_runs(
    repository: Path, run_once: Run, model: str, change: str, mode: str
) -> None:
    args = ("--upskill-models", model, "--upskill-cache-dir=recordings", "skills")
    run_once(*args)
    git(repository, "switch", "--quiet", "main")
    commit_all(repository, "recordings")
    git(repository, "switch", "--quiet", "--create", "later")
    for file in repository.glob("recordings/*/*.json"):
        text = file.read_text("utf-8")
        if '"subject": "billing::' in text and change == "edited":
            file.write_text(text.replace('"37"', '"38"'), "utf-8")
        elif '"subject": "billing::' in text:
            file.unlink()

    result = run_once(*args, "--upskill-changed-since=main", f"--upskill-cache={mode}", "-v")

    # What is deleted can be requested again.
    is_green = (mode, change) == ("auto", "deleted")
    assert (result.ret == pytest.ExitCode.OK) is is_green
    result.stdout.fnmatch_lines(["*billing/skill_meta.json::*with_skill* *"])
    result.stdout.no_fnmatch_line("*shipping/skill_meta.json::*")


def test_the_text_below_a_description_takes_no_query_of_another_skill(
    with_query: Path, run_once: Run
) -> None:
    changed(with_query)

    result = run_once(*ARGS, "-v")

    result.stdout.no_fnmatch_line("*billing/skill_meta.json::*")


def test_a_new_description_that_the_committed_catalogue_lacks_is_named(
    repository: Path, run_once: Run, write_skill: WriteSkill
) -> None:
    run_once("--upskill-catalogue-update", "skills")
    commit_all(repository, "catalogue")
    write_skill(name="bills")

    result = run_once(*ARGS)

    assert result.ret == NOT_MEASURED
    result.stdout.fnmatch_lines(
        ["exit code 75: bills: the catalogue file is not up to date, *: pytest --upskill-cat*"]
    )


def test_a_catalogue_that_lacks_a_skill_without_cases_or_has_a_deleted_one_is_named_too(
    repository: Path, run_once: Run, write_skill: WriteSkill
) -> None:
    run_once("--upskill-catalogue-update", "skills")
    commit_all(repository, "catalogue")
    git(repository, "branch", "--force", "main")
    (write_skill(name="thief") / "skill_meta.json").unlink()
    shutil.rmtree(repository / "skills" / "shipping")

    result = run_once(*ARGS)

    assert result.ret == NOT_MEASURED
    result.stdout.fnmatch_lines(["exit code 75: shipping, thief: the catalogue file is not up *"])


def test_an_edited_catalogue_that_describes_an_unchanged_skill_otherwise_is_named(
    repository: Path, run_once: Run
) -> None:
    run_once("--upskill-catalogue-update", "skills")
    commit_all(repository, "catalogue")
    git(repository, "branch", "--force", "main")
    file = repository / ".upskill" / "catalogue.json"
    file.write_text(file.read_text("utf-8").replace("Facts", "Guesses", 1), "utf-8")

    result = run_once(*ARGS)

    assert result.ret == NOT_MEASURED
    result.stdout.fnmatch_lines(["exit code 75: billing: the catalogue file is not up to date, *"])


def test_recordings_may_be_outside_of_the_repository(repository: Path, run_once: Run) -> None:
    changed(repository)

    result = run_once(*ARGS, "--upskill-cache-dir=../outside")

    assert result.parseoutcomes()["passed"] == 3
