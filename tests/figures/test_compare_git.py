"""Comparisons with the skill as a git ref has it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_upskill.report.exit_code import NOT_MEASURED
from tests import junit
from tests.conftest import Run, WriteSkill
from tests.figures.conftest import LENIENT
from tests.git_repository import commit_all, git
from tests.scripted_model import Script

pytestmark = pytest.mark.needs("git")

COMPARE = "--upskill-compare=main"
OFFLINE = ("--upskill-models=offline", "skills")

Branch = Callable[..., tuple[str, ...]]


@pytest.fixture
def branch(script: Script, pytester: pytest.Pytester) -> Branch:
    """Commit a skill whose text says OLD on main, and another text on a branch."""

    def branch(**cases: str) -> tuple[str, ...]:
        args = script(**cases)
        skill = pytester.path / "skills" / "csv" / "SKILL.md"
        new = skill.read_text("utf-8")
        skill.write_text(f"{new}\nOLD\n", "utf-8")
        commit_all(pytester.path)
        git(pytester.path, "switch", "--quiet", "--create", "branch")
        skill.write_text(new, "utf-8")
        return args

    return branch


def test_a_skill_that_became_worse_is_red_with_three_figures(branch: Branch, run: Run) -> None:
    args = branch(one="----- ----- +++++", two="+++++ ----- +++++")

    result = run(*args, COMPARE, LENIENT, "--junitxml=junit.xml", "-v")

    result.assert_outcomes(passed=6, failed=1)
    result.stdout.fnmatch_lines(
        [
            "csv on haiku: the skill became worse than main: one (all cases: 5/10 with *)",
            "worse: one: 5/5 -> 0/5",
            "against no skill: helps: *",
            "next: restore what the skill has lost; where that is right, correct the cases",
            "*= skills: without -> old -> with =*",
            "  haiku *0->100->50% *",
        ]
    )
    result.stdout.fnmatch_lines(["*::two?haiku-old_skill? *"])
    gate = junit.properties(junit.cases_of(Path("junit.xml"))["gate[haiku]"])
    assert (gate["upskill.passes.old"], gate["upskill.runs.old"]) == ("10", "10")
    assert (gate["upskill.compared_with"], gate["upskill.regressed"]) == ("main", "true")


def test_what_a_changed_case_gains_does_not_hide_what_another_lost(
    branch: Branch, run_once: Run
) -> None:
    args = branch(one="----- ----- +++++", two="+++++ ----- -----", three="+++++ ----- +++++")
    file = Path("skills", "csv", "skill_meta.json")
    meta = json.loads(file.read_text("utf-8"))
    meta["cases"][1] |= {"expected": {"regex": "^right"}}
    meta["cases"][2] |= {"min_pass_rate": 0.5}
    file.write_text(json.dumps(meta), "utf-8")

    result = run_once(*args, COMPARE, LENIENT)

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "csv on haiku: the skill became worse than main: one (all cases: 5/10 with *)",
            "    -50 points against main, without new and changed cases: 0 of 2 cases better,*",
            "csv on haiku: not compared, new or changed since main: two",
        ]
    )


def test_a_regression_that_fails_no_gate_says_why(branch: Branch, run_once: Run) -> None:
    args = branch(one="----- ----- +++++", two="----- ----- +++++")

    result = run_once(*args, COMPARE, LENIENT, "--upskill-fail-on=hurts")

    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["csv on haiku: it became worse, which fails no gate here: *"])


def test_a_case_is_first_of_all_worse_or_better_than_at_the_ref(
    branch: Branch, run_once: Run
) -> None:
    args = branch(one="++--- ----- +++++", two="+++++ ----- ++---", three="+++++ ----- +++++")

    run_once(*args, COMPARE, LENIENT, "--upskill-md=r.md", "--upskill-html=r.html")

    text = Path("r.md").read_text("utf-8")
    assert "| passed without \u2192 old \u2192 with |" in text
    assert "Pass rates without \u2192 old \u2192 with the skill" in text
    rows = [line for line in text.splitlines() if line.startswith("| `")][1:]
    assert [row.split(" | ")[:2] for row in rows] == [
        ["| `one`", "worse than `main`"],
        ["| `two`", "better than `main`"],
        ["| `three`", "better than `without`"],
    ]
    since = "+0 points against main: 1 of 3 cases better, 1 unchanged, 1 worse"
    assert f"{since}; +80 against no skill: 3 of 3 cases better" in text
    assert "0/5 \u2192 5/5 \u2192 2/5" in rows[0]
    page = Path("r.html").read_text("utf-8")
    assert "worse than <bdi>main</bdi>" in page
    assert "passed, without \u2192 old \u2192 with" in page


def test_what_main_got_after_the_branch_left_it_does_not_count(
    branch: Branch, run_once: Run, pytester: pytest.Pytester
) -> None:
    args = branch(one="+ - +")
    commit_all(pytester.path)
    git(pytester.path, "switch", "--quiet", "main")
    skill = pytester.path / "skills" / "csv" / "SKILL.md"
    skill.write_text(skill.read_text("utf-8").replace("OLD", "later"), "utf-8")
    commit_all(pytester.path)
    git(pytester.path, "switch", "--quiet", "branch")

    result = run_once(*args, COMPARE)

    result.stdout.fnmatch_lines(
        ["csv on haiku: +0 points against main, not worse (1/1 with the skill, main 1/1)"]
    )


def test_missing_runs_of_the_old_skill_leave_the_gate_undecided(
    branch: Branch, run_once: Run
) -> None:
    args = branch(one="++--- ----- +++!!")

    result = run_once(*args, COMPARE, "--upskill-min-pass-rate=0")

    why = "missing data: 2 missing runs could decide: the skill became worse than main: one"
    said = [line for line in result.outlines if "gate not decided" in line]
    assert len(said) == 1
    assert said[0].startswith(
        f"exit code 75: csv on haiku: gate not decided: {why} (all cases: 2/5 "
    )


def test_a_case_without_answers_of_the_old_skill_alone_is_measured(
    branch: Branch, run_once: Run
) -> None:
    args = branch(one="+++++ ----- !!!!!")

    run_once(*args, COMPARE, "--upskill-md=r.md")

    assert "\nMeasured on 1 case, 5 runs of each in each arm: " in Path("r.md").read_text("utf-8")


@pytest.mark.usefixtures("repository")
def test_an_unchanged_skill_is_not_run_twice(run_once: Run) -> None:
    result = run_once(*OFFLINE, COMPARE)

    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["billing on offline: unchanged since main (*): not compared"])


def test_a_skill_of_which_only_the_cases_changed_is_not_run_twice(
    repository: Path, run_once: Run
) -> None:
    cases = repository / "skills" / "billing" / "skill_meta.json"
    cases.write_text(cases.read_text("utf-8").replace("37", "3"), "utf-8")

    result = run_once(*OFFLINE, COMPARE)

    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["* no text changed since main (*): not compared"])


def test_a_file_that_the_skill_names_is_part_of_it(repository: Path, run_once: Run) -> None:
    skill = repository / "skills" / "billing"
    (skill / "limits.md").write_text("More facts.\n", "utf-8")
    with (skill / "SKILL.md").open("a", encoding="utf-8") as file:
        file.write("\nSee limits.md for more.\n")
    commit_all(repository)
    git(repository, "switch", "--quiet", "--create", "later")
    (skill / "limits.md").write_text("Other facts.\n", "utf-8")

    result = run_once(*OFFLINE, "--upskill-compare=branch")

    result.assert_outcomes(passed=4)


@pytest.mark.usefixtures("repository")
def test_a_new_skill_has_nothing_to_be_compared_with(
    write_skill: WriteSkill, run_once: Run
) -> None:
    write_skill(name="shipping", body="Nothing that billing says: 37 apples a day, retry twice.\n")

    result = run_once(*OFFLINE, COMPARE)

    result.stdout.fnmatch_lines(["shipping on offline: new since main (*): not compared"])


def test_a_skill_that_git_ignores_is_not_called_unchanged(
    write_skill: WriteSkill, pytester: pytest.Pytester, run_once: Run
) -> None:
    write_skill()
    (pytester.path / ".gitignore").write_text("skills/\n", "utf-8")
    commit_all(pytester.path)

    result = run_once(*OFFLINE, COMPARE)

    result.stdout.fnmatch_lines(["billing on offline: new since main (*): not compared"])


def test_a_moved_skill_is_found_under_its_old_name(repository: Path, run_once: Run) -> None:
    git(repository, "mv", "skills/billing", "skills/invoices")
    skill = repository / "skills" / "invoices" / "SKILL.md"
    skill.write_text(skill.read_text("utf-8").replace("name: billing", "name: invoices"), "utf-8")

    result = run_once(*OFFLINE, COMPARE)

    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(
        ["invoices on offline: +0 points against main, not worse (1/1 with *, main 1/1)"]
    )


def test_a_deleted_skill_does_not_fail_the_comparison(
    repository: Path, write_skill: WriteSkill, run_once: Run
) -> None:
    write_skill(name="shipping")
    shutil.rmtree(repository / "skills" / "billing")
    git(repository, "add", "--all")

    result = run_once(*OFFLINE, COMPARE)

    assert result.ret == pytest.ExitCode.OK


def test_a_skill_that_was_moved_and_rewritten_is_found_by_its_other_files(
    repository: Path, run_once: Run
) -> None:
    (repository / "skills" / "billing").rename(repository / "skills" / "invoices")
    new = "---\nname: invoices\ndescription: All new.\n---\nTry 37 times.\n"
    (repository / "skills" / "invoices" / "SKILL.md").write_text(new, "utf-8")
    git(repository, "add", "--all")
    before = git(repository, "status", "--porcelain", "--", "skills")

    result = run_once(*OFFLINE, COMPARE, LENIENT)

    result.stdout.fnmatch_lines(["invoices on offline: * (* with the skill, main 1/1*)"])
    result.stdout.no_fnmatch_line("*was deleted or moved*")
    assert git(repository, "status", "--porcelain", "--", "skills") == before


@pytest.mark.parametrize("quiet", ["-v", "-q"])
def test_a_skill_that_may_be_another_one_renamed_is_not_green(
    repository: Path, write_skill: WriteSkill, run_once: Run, quiet: str
) -> None:
    shutil.rmtree(repository / "skills" / "billing")
    case = {"input": "How many apples a day?", "expected": {"regex": "thirty-\\w+"}}
    write_skill(case, name="shipping", body="Thirty apples: thirty-seven.\n")

    result = run_once(*OFFLINE, COMPARE, LENIENT, quiet)

    assert result.ret == NOT_MEASURED
    why = "it did not exist at main (*), and skills/billing is gone: if it was renamed, keep *"
    result.stdout.fnmatch_lines(
        [f"exit code 75: nothing was compared with main: shipping on offline: not compared: {why}"]
    )


def test_a_repository_without_a_commit_says_so(
    write_skill: WriteSkill, run_once: Run, pytester: pytest.Pytester
) -> None:
    write_skill()
    git(pytester.path, "init", "-q")

    result = run_once(*OFFLINE, "--upskill-compare=HEAD")

    result.stderr.fnmatch_lines(["ERROR: --upskill-compare: * has no commit yet: git commit *"])


@pytest.mark.parametrize("ref", ["origin/main", "nowhere", "--output=x", ""])
@pytest.mark.usefixtures("repository")
def test_an_unknown_ref_is_refused_in_one_line_with_a_cure(run_once: Run, ref: str) -> None:
    result = run_once(*OFFLINE, f"--upskill-compare={ref}")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [f"ERROR: --upskill-compare: no commit is called '{ref}' in *: git fetch*"]
    )


def test_outside_a_repository_it_is_refused_in_one_line(
    write_skill: WriteSkill, run_once: Run
) -> None:
    write_skill()

    result = run_once(*OFFLINE, COMPARE)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: --upskill-compare: * is not in a git repository: git init, *"]
    )


def test_a_shallow_clone_is_refused_in_one_line_with_the_cure(
    repository: Path, run_once: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit_all(repository, "on the branch")
    git(repository, "switch", "--quiet", "main")
    commit_all(repository, "on main")
    clone = repository / "clone"
    git(repository, "clone", "--quiet", "--depth=1", f"file://{repository}", str(clone))
    git(clone, "fetch", "--quiet", "--depth=1", "origin", "branch:branch")
    monkeypatch.chdir(clone)

    result = run_once(*OFFLINE, "--rootdir=.", "--upskill-compare=branch")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: * shallow clone does not reach back * git fetch --unshallow (actions/checkout: *"]
    )


@pytest.mark.usefixtures("repository")
def test_what_git_cannot_read_is_reported_in_the_words_of_git(
    repository: Path, run_once: Run
) -> None:
    skill = "skills/billing/SKILL.md"
    blob = git(repository, "rev-parse", f"main:{skill}").strip()
    (repository / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    (repository / skill).write_text("---\nname: billing\ndescription: New.\n---\n37\n", "utf-8")

    result = run_once(*OFFLINE, COMPARE)

    result.stdout.fnmatch_lines([f"*git * fails in {repository}*: *unable to read *{blob}*"])


def test_a_machine_without_git_is_refused_in_one_line(
    run_once: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")

    result = run_once(*OFFLINE, COMPARE)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --upskill-compare: git is not installed: install it, *"])
