"""A pull request that takes cases out of the measurement, without an edit of a case."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from pytest_upskill.report.exit_code import NOT_MEASURED
from tests.conftest import Run, WriteSkill
from tests.git_repository import commit_all, git
from tests.session.taken_away import ARGS, CASES, branch, change, said

__all__ = ["branch"]

pytestmark = pytest.mark.needs("git")


def test_one_of_two_case_files_is_deleted(
    branch: Path, run_once: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    (branch / "evals" / "evals.json").unlink()

    result = run_once(*ARGS)

    lost = "skills/billing/evals/evals.json was deleted or moved since main: see that no case is *"
    said(result, lost, "1 changed skill is not fully measured")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines([f"::warning title=pytest-upskill::{lost}"])
    strict = run_once(*ARGS, "--upskill-fail-on=hurts,regression,cases")
    assert strict.ret == pytest.ExitCode.TESTS_FAILED
    strict.stdout.fnmatch_lines([f"FAILED skills/billing/SKILL.md::cases - {lost[:32]}*"])


def test_a_case_file_is_moved_and_loses_a_case(branch: Path, run_once: Run) -> None:
    shutil.move(branch / "skill_meta.json", branch / "evals" / "cases.json")
    (branch / "evals" / "cases.json").write_text(json.dumps({"cases": CASES[:1]}), "utf-8")

    lost = "skills/billing/skill_meta.json was deleted or moved since main: *"
    said(run_once(*ARGS), lost, "1 changed skill is not fully measured")


@pytest.mark.parametrize("folder", ["skills/billing", "skills/group/billing"])
@pytest.mark.parametrize("file", ["evals.json", "evals/evals.json"])
def test_a_case_is_lost_as_its_file_and_its_skill_get_other_names(
    write_skill: WriteSkill, pytester: pytest.Pytester, run_once: Run, folder: str, file: str
) -> None:
    write_skill(*CASES)
    commit_all(pytester.path)
    git(pytester.path, "switch", "--quiet", "--create", "branch")
    if folder != "skills/billing":
        Path(folder).parent.mkdir()
        git(pytester.path, "mv", "skills/billing", folder)
    new = Path(folder, file)
    new.parent.mkdir(exist_ok=True)
    change(Path(folder))
    Path(folder, "skill_meta.json").unlink()
    evals = [{"id": "a", "prompt": "How long?", "assertions": [{"type": "regex", "value": "."}]}]
    new.write_text(json.dumps(evals), "utf-8")
    git(pytester.path, "add", "--all")

    result = run_once(*ARGS, "--upskill-fail-on=cases")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*: cases since main (???????): removed: b*"])


def test_the_cases_at_the_ref_cannot_be_read(branch: Path, run_once: Run) -> None:
    file = branch / "skill_meta.json"
    good = file.read_text("utf-8")
    git(branch, "switch", "--quiet", "main")
    file.write_text(good.replace('"id"', '"unknown": 1, "id"', 1), "utf-8")
    commit_all(branch.parents[1])
    git(branch, "switch", "--quiet", "--create", "later")
    file.write_text(json.dumps({"cases": CASES[:1]}), "utf-8")

    result = run_once(*ARGS)

    result.stdout.fnmatch_lines(["*: cases may have been removed: those at main (*) cannot be *"])


TAKEN_AWAY = {
    "an option": ("pytest.ini", '[pytest]\naddopts = -k "not b["\n'),
    "an option for an arm": ("pytest.ini", '[pytest]\naddopts = -k "not (b[ and with_skill)"\n'),
    "a node id": (
        "pytest.ini",
        "[pytest]\naddopts = --deselect 'skills/billing/skill_meta.json::b[offline-with_skill]'\n",
    ),
    "a hook": (
        "conftest.py",
        """if True:
            def pytest_collection_modifyitems(items):
                items[:] = [item for item in items if not item.name.startswith("b[")]
        """,
    ),
    "a marker": (
        "conftest.py",
        """if True:
            def pytest_itemcollected(item):
                if item.name.startswith("b["):
                    item.add_marker("skip")
        """,
    ),
    "a skip": (
        "conftest.py",
        """if True:
            import pytest

            def pytest_runtest_setup(item):
                if item.name.startswith("b["):
                    pytest.skip("flaky")
        """,
    ),
}


@pytest.mark.parametrize("way", TAKEN_AWAY)
@pytest.mark.parametrize("since", [["--upskill-changed-since=main"], []], ids=["since", ""])
def test_a_branch_takes_a_case_of_a_changed_skill_away(
    branch: Path, run: Run, way: str, since: list[str]
) -> None:
    change(branch)
    file, text = TAKEN_AWAY[way]
    Path(file).write_text(text, "utf-8")

    result = run(*ARGS, *since)
    strict = run(*ARGS, *since, "--upskill-fail-on=cases")

    line = "billing::b was skipped or deselected, and so not measured"
    said(result, line, "1 changed skill is not fully measured")
    assert result.ret == pytest.ExitCode.OK
    assert strict.ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize("file", ["promptfooconfig.yaml", "evals/billing/evals.json"])
def test_cases_of_a_changed_skill_outside_the_arguments_are_not_measured(
    branch: Path, run: Run, file: str
) -> None:
    case = {"vars": {"prompt": "Hi"}, "assert": [{"type": "regex", "value": "."}]}
    Path("evals/billing").mkdir(parents=True)
    Path(file).write_text(json.dumps({"skill": "billing", "tests": [case]}), "utf-8")

    unchanged = run(*ARGS, "--upskill-fail-on=cases")
    change(branch)
    result = run(*ARGS, "--upskill-fail-on=cases")

    assert unchanged.ret == pytest.ExitCode.OK
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    line = f"{file} was not named as an argument, so not all cases of billing run"
    said(result, line, "1 changed skill is not fully measured")


def test_a_promptfoo_file_that_lost_its_assertions_measures_nothing(
    branch: Path, run_once: Run
) -> None:
    tests = "prompts: ['{{{{q}}}}']\ntests:\n- vars:\n    q: Why?\n"
    text = f"{tests}{{}}assert: [{{{{type: regex, value: .}}}}]\n"
    for file in (branch / "skill_meta.json", branch / "evals" / "evals.json"):
        file.unlink()
    file = branch / "promptfooconfig.yaml"
    file.write_text(text.format("  "), "utf-8")
    commit_all(branch.parents[1], "promptfoo")
    git(branch, "branch", "--force", "main")
    file.write_text(text.format("    "), "utf-8")
    change(branch)

    result = run_once(*ARGS)

    assert result.ret == NOT_MEASURED
    why = "1 case: nothing to check: add assertions"
    result.stdout.fnmatch_lines([f"exit code 75: nothing was measured of what changed in *: {why}"])


@pytest.mark.usefixtures("branch")
def test_a_case_of_an_unchanged_skill_is_not_lost(run_once: Run) -> None:
    result = run_once(*ARGS, "-k", "not b[", "--upskill-fail-on=cases")

    assert result.ret == pytest.ExitCode.OK
    result.stdout.no_fnmatch_line("*skipped or deselected*")


def test_what_an_interrupted_run_left_out_is_not_lost(branch: Path, run_once: Run) -> None:
    (branch / "SKILL.md").write_text("---\nname: billing\ndescription: Bills.\n---\n", "utf-8")
    (branch / "skill_meta.json").write_text(
        json.dumps({"cases": [CASES[0] | {"expected": {"contains": "x"}}, CASES[1]]}), "utf-8"
    )

    result = run_once(*ARGS, "-x")

    result.stdout.no_fnmatch_line("*skipped or deselected*")


def test_cases_of_another_skill_in_one_file_were_not_removed(
    write_skill: WriteSkill, pytester: pytest.Pytester, run_once: Run
) -> None:
    for name in ("billing", "shipping"):
        (write_skill(name=name) / "skill_meta.json").unlink()
    entries = [
        {
            "id": name,
            "skill": name,
            "prompt": "Why?",
            "assertions": [{"type": "regex", "value": "."}],
        }
        for name in ("billing", "shipping")
    ]
    (pytester.path / "skills" / "evals").mkdir()
    (pytester.path / "skills" / "evals" / "evals.json").write_text(json.dumps(entries), "utf-8")
    commit_all(pytester.path)
    git(pytester.path, "switch", "--quiet", "--create", "branch")
    write_skill(name="billing", body="It is 37, still.\n").joinpath("skill_meta.json").unlink()

    result = run_once(*ARGS)

    result.assert_outcomes(passed=7)
    result.stdout.no_fnmatch_line("*removed:*")


def test_a_text_that_a_link_leads_to_is_a_part_of_the_skill(
    write_skill: WriteSkill, pytester: pytest.Pytester, run_once: Run
) -> None:
    folder = write_skill(*CASES)
    common = pytester.path / "common.md"
    shutil.move(folder / "SKILL.md", common)
    (folder / "SKILL.md").symlink_to("../../common.md")
    commit_all(pytester.path)
    git(pytester.path, "switch", "--quiet", "--create", "branch")
    common.write_text(common.read_text("utf-8") + "More.\n", "utf-8")

    result = run_once(*ARGS, "--upskill-changed-since=main")

    result.stdout.fnmatch_lines(
        ["collected 6 items", "billing on offline: +0 points against main*"]
    )


def test_a_case_removed_from_a_file_that_a_link_leads_to_is_named(
    write_skill: WriteSkill, pytester: pytest.Pytester, run_once: Run
) -> None:
    folder = write_skill(*CASES)
    cases = pytester.mkdir("cases") / "billing.json"
    shutil.move(folder / "skill_meta.json", cases)
    (folder / "skill_meta.json").symlink_to("../../cases/billing.json")
    commit_all(pytester.path)
    git(pytester.path, "switch", "--quiet", "--create", "branch")
    cases.write_text(json.dumps({"cases": CASES[:1]}), "utf-8")

    result = run_once(*ARGS, "--upskill-changed-since=main")

    result.stdout.fnmatch_lines(["billing on offline: cases since main (*): removed: b: *"])


def test_a_case_outside_the_skill_whose_input_has_the_answer_now_was_changed(
    write_skill: WriteSkill, pytester: pytest.Pytester, run_once: Run
) -> None:
    folder = write_skill()
    (folder / "skill_meta.json").unlink()
    home = pytester.path / "evals" / "billing"
    home.mkdir(parents=True)
    case = {"id": "a", "prompt": "How long?", "files": ["in.txt"]}
    evals = [case | {"assertions": [{"type": "contains", "value": "37"}]}]
    (home / "evals.json").write_text(json.dumps({"evals": evals}), "utf-8")
    (home / "in.txt").write_text("A question.", "utf-8")
    commit_all(pytester.path)
    git(pytester.path, "switch", "--quiet", "--create", "branch")
    (home / "in.txt").write_text("A question: 37.", "utf-8")

    result = run_once(*ARGS, "evals")

    result.stdout.fnmatch_lines(["billing on offline: cases since main (*): changed: a: *"])


def test_a_baseline_of_queries_is_no_case_file(branch: Path, run_once: Run) -> None:
    kept = branch.parents[1] / ".upskill" / "baselines" / "skills" / "billing"
    kept.mkdir(parents=True)
    (kept / "m@trigger.json").write_text("{}", "utf-8")
    git(branch, "switch", "--quiet", "main")
    commit_all(branch.parents[1])
    git(branch, "switch", "--quiet", "--create", "moved")
    kept.rename(kept.with_name("bills"))

    result = run_once(*ARGS)

    result.stdout.no_fnmatch_line("*deleted or moved*")


def test_cases_that_a_setting_finds_elsewhere_are_not_called_lost(
    branch: Path, run_once: Run, pytester: pytest.Pytester
) -> None:
    (pytester.path / "quiz").mkdir()
    shutil.rmtree(branch / "evals")
    (branch / "skill_meta.json").rename(pytester.path / "quiz" / "b.json")
    pytester.makeini("[pytest]\nupskill_case_files = quiz/b.json=skills/billing")
    commit_all(pytester.path)
    git(pytester.path, "branch", "--force", "main", "HEAD")
    change(branch)

    result = run_once(*ARGS, "quiz", "--upskill-fail-on=regression,cases")

    assert result.ret == pytest.ExitCode.OK
    assert Path("r.md").read_text("utf-8").splitlines()[1].startswith("### \u2705")


def test_a_failure_that_a_mark_excuses_costs_the_tick(
    branch: Path, run_once: Run, pytester: pytest.Pytester
) -> None:
    (branch / "skill_meta.json").write_text(
        json.dumps({"cases": [{**CASES[0], "expected": {"contains": "never"}}, CASES[1]]}), "utf-8"
    )
    commit_all(pytester.path)
    git(pytester.path, "branch", "--force", "main", "HEAD")
    change(branch)
    pytester.makeconftest(
        "import pytest\n"
        "def pytest_collection_modifyitems(items):\n"
        "    for item in items:\n"
        "        if '::a' in item.nodeid: item.add_marker(pytest.mark.xfail)\n"
    )

    result = run_once(*ARGS)

    assert result.ret == pytest.ExitCode.OK
    _, title, *_ = Path("r.md").read_text("utf-8").splitlines()
    assert title.startswith("### \u2754")
    assert "1 failure excused by xfail" in title


def test_a_mark_does_not_hide_that_a_case_became_worse(
    branch: Path, run_once: Run, pytester: pytest.Pytester
) -> None:
    file = branch.parent / "shipping" / "SKILL.md"
    file.write_text(file.read_text("utf-8").replace("37", "some"), "utf-8")
    pytester.makeconftest(
        "import pytest\n"
        "def pytest_collection_modifyitems(items):\n"
        "    for item in items:\n"
        "        item.add_marker(pytest.mark.xfail)\n"
    )

    result = run_once(*ARGS, "--upskill-fail-on=cases")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    hidden = "shipping on offline: excused by a mark, though worse than main: budget"
    result.stdout.fnmatch_lines([f"*{hidden}*", "next: correct the skill and remove the mark, *"])
    page = Path("r.md").read_text("utf-8")
    assert "failed, but excused by a mark such as xfail: budget" in page
