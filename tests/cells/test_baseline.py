from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_upskill.cells.baseline_folder import baseline_file
from pytest_upskill.cells.baseline_update import baseline_of
from pytest_upskill.cells.gate import NOT_MEASURED
from pytest_upskill.cells.past import against_baseline
from pytest_upskill.formats.load import load_skills
from pytest_upskill.model import parse_model
from pytest_upskill.trials.digests import grader_digest
from pytest_upskill.trials.trial import plan
from tests.conftest import QUESTION, Run, WriteSkill
from tests.reporting import counted
from tests.scripted import Script

UPDATE, COMPARE = "--upskill-baseline-update", "--upskill-compare=baseline"
BASELINES = ".upskill/baselines"
LENIENT = "--upskill-min-pass-rate=0"
GOOD = {"one": "++++++++++ ----------", "two": "+++++++++- ----------"}


@pytest.fixture
def file(pytester: pytest.Pytester) -> Path:
    return pytester.path.joinpath(BASELINES, "skills", "csv", "skill_meta.json", "haiku.json")


@pytest.fixture
def recorded(script: Script, run_once: Run, file: Path) -> Path:
    assert run_once(*script(**GOOD), UPDATE, LENIENT).ret == pytest.ExitCode.OK
    return file


def test_an_update_writes_the_counts_of_every_case_one_a_line(
    script: Script, run: Run, file: Path
) -> None:
    result = run(*script(**GOOD), UPDATE, LENIENT, "-q")

    result.stdout.fnmatch_lines([f"baseline of csv on haiku: {file} written, commit it"])
    lines = file.read_text("utf-8").split("\n")
    assert lines[1:5] == [
        ' "format": 2,',
        ' "skill": "csv",',
        ' "model": "haiku",',
        lines[4],
    ]
    one, two = (json.loads(line.strip().rstrip(",")) for line in lines[-5:-3])
    assert (one["id"], one["with"], one["without"]) == ("one", [10, 10], [0, 10])
    assert (two["id"], two["with"], two["without"]) == ("two", [9, 10], [0, 10])
    assert lines[-1] == ""
    assert json.loads("\n".join(lines))["served"] == ["haiku-1"]


def test_the_same_counts_leave_the_file_as_it_is(
    script: Script, run_once: Run, recorded: Path
) -> None:
    text = recorded.read_text("utf-8").replace('"date": "', '"date": "1999-')
    recorded.write_text(text, "utf-8")

    result = run_once(*script(**GOOD), UPDATE, LENIENT)

    result.stdout.fnmatch_lines([f"baseline of csv on haiku: {recorded} is up to date"])
    assert recorded.read_text("utf-8") == text


@pytest.mark.parametrize(
    ("cases", "option", "reason"),
    [
        (GOOD, "-k one", "2 of 4 trials ran"),
        (GOOD | {"two": "+++++++++! ----------"}, "-v", "1 of its runs is missing"),
    ],
)
def test_a_run_that_was_not_whole_writes_none_and_says_why(
    script: Script, run_once: Run, file: Path, *, cases: dict[str, str], option: str, reason: str
) -> None:
    result = run_once(*script(**cases), UPDATE, *option.split())

    result.stdout.fnmatch_lines([f"no baseline written of csv on haiku: {reason}*"])
    assert not file.exists()


@pytest.mark.parametrize("quiet", ["-v", "-q"])
def test_a_folder_that_takes_no_baseline_makes_the_session_red_as_a_report_would(
    script: Script, run: Run, file: Path, quiet: str
) -> None:
    args = script(**GOOD)
    folder = file.parents[3]
    folder.parent.mkdir()
    folder.touch()

    result = run(*args, UPDATE, LENIENT, quiet)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.assert_outcomes(passed=5)
    result.stdout.fnmatch_lines([f"no baseline written of csv on haiku: {file}: *Not a directory*"])


def test_nothing_is_written_without_being_asked(
    script: Script, run_once: Run, pytester: pytest.Pytester
) -> None:
    run_once(*script(**GOOD), COMPARE, LENIENT)

    assert not (pytester.path / ".upskill").exists()


@pytest.mark.usefixtures("recorded")
def test_a_skill_that_became_worse_is_red_in_one_line(script: Script, run: Run) -> None:
    args = script(one="---------- ----------", two="+++++++++- ----------")

    result = run(*args, COMPARE, LENIENT)

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines(
        [
            "csv on haiku: the skill became worse than the baseline: one (9/20 with the skill, *)",
            "worse: one: 10/10 -> 0/10",
        ]
    )


@pytest.mark.usefixtures("recorded")
def test_fewer_runs_than_the_baseline_has_will_do(script: Script, run_once: Run) -> None:
    result = run_once(*script(one="--- ---", two="+++ ---"), COMPARE, LENIENT)

    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines(
        ["* worse than the baseline: one (3/6 with the skill, *, p = .014)"]
    )


@pytest.mark.parametrize("one", ["++++++++++", "+++++++++-"])
@pytest.mark.usefixtures("recorded")
def test_a_skill_that_did_not_become_worse_beyond_chance_is_green(
    script: Script, run_once: Run, one: str
) -> None:
    result = run_once(*script(**(GOOD | {"one": f"{one} ----------"})), COMPARE, LENIENT)

    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["csv on haiku: * with the skill, baseline 19/20, p = *"])


@pytest.mark.usefixtures("recorded")
def test_a_regression_is_red_only_where_it_is_to_fail(script: Script, run_once: Run) -> None:
    args = script(one="---------- ----------", two="---------- ----------")

    result = run_once(*args, COMPARE, LENIENT, "--upskill-fail-on=hurts")

    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["csv on haiku: became worse than the baseline: one, two (0/20 *"])


NO_BASELINE = "csv on haiku: no baseline: record one with --upskill-runs 10 *-update and commit it"


@pytest.mark.parametrize("quiet", ["-v", "-q"])
def test_a_comparison_without_any_baseline_is_not_green_and_says_how_to_record_one(
    script: Script, run: Run, quiet: str
) -> None:
    result = run(*script(**GOOD), COMPARE, LENIENT, quiet, "--upskill-md=report.md")

    assert result.ret == NOT_MEASURED
    result.stdout.fnmatch_lines(
        [f"nothing was compared with the baseline (exit code 75): {NO_BASELINE}"]
    )
    heading = Path("report.md").read_text("utf-8").splitlines()[1]
    assert (
        heading
        == "### \u2754 `csv on haiku: helps, gate passed, nothing compared with the baseline`"
    )


def test_a_comparison_of_nothing_does_not_hide_that_a_case_failed(
    script: Script, run_once: Run
) -> None:
    result = run_once(*script(one="- -"), COMPARE)

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines([f"nothing was compared with the baseline: {NO_BASELINE}"])


def test_a_case_that_changed_is_new_or_is_gone_is_listed_and_not_compared(
    script: Script, run_once: Run, recorded: Path
) -> None:
    text = recorded.read_text("utf-8")
    digest = json.loads(text)["cases"][0]["grader"]
    recorded.write_text(text.replace(digest, "another-grader", 1), "utf-8")

    result = run_once(
        *script(one="--- ---", two="+++ ---", three="+++ ---"), COMPARE, LENIENT, "-q"
    )
    nothing = run_once(*script(one="--- ---", four="+++ ---"), COMPARE, LENIENT)

    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        [
            f"csv on haiku: not compared, {word} since the baseline: {case}"
            for word, case in [("changed", "one"), ("new", "three")]
        ]
    )
    assert nothing.ret == NOT_MEASURED
    nothing.stdout.fnmatch_lines(
        [
            "csv on haiku: no case in common with the baseline: record one with *",
            "csv on haiku: not compared, changed since the baseline: one",
            "csv on haiku: not compared, new since the baseline: four",
            "csv on haiku: not compared, gone since the baseline: two",
            "nothing was compared with the baseline (exit code 75): csv on haiku: no case *",
        ]
    )


def test_checks_that_expect_different_values_are_different_graders(write_skill: WriteSkill) -> None:
    values: tuple[object, ...] = (0, False, None, "", [], {}, 1, True, "1")
    expected: list[object] = [{"json": {"a": value}} for value in values]
    expected += [{"contains": "one"}, {"contains": "two"}, {"not_contains": "two"}]
    folder = write_skill(
        *({"id": str(n), "input": "?", "expected": e} for n, e in enumerate(expected))
    )
    (skill,) = load_skills(folder / "skill_meta.json")
    trials = plan(skill, [parse_model("offline")], runs=1, min_pass_rate=1, max_tokens=1)

    digests = {grader_digest(trial) for trial in trials}

    assert len(digests) == len(expected)


def test_a_case_that_was_only_not_measured_is_not_called_gone() -> None:
    baseline = baseline_of(counted([(5, 0), (5, 0), (5, 0)]))
    errors = tuple(
        replace(trial, runs=(), errors=("no reply",)) for trial in counted([(5, 0), (5, 0)]).trials
    )
    now = replace(
        counted([(5, 0)]), skipped=("case-3",), trials=counted([(5, 0)]).trials + errors[2:]
    )

    comparison = against_baseline(now, baseline)

    assert comparison.notes == ("not compared, without a run with the skill now: case-2, case-3",)


@pytest.mark.parametrize("option", [COMPARE, UPDATE])
def test_a_baseline_whose_cases_are_gone_is_named_and_one_that_did_not_run_is_not(
    script: Script, run_once: Run, recorded: Path, pytester: pytest.Pytester, option: str
) -> None:
    args = script(**GOOD)
    shutil.copytree("skills/csv", "skills/xml")
    for name in ("sql", "xml"):
        copy_baseline(recorded, name, '"skill": "csv"', f'"skill": "{name}"')

    result = run_once("skills/csv", *args[1:], option, LENIENT)

    assert result.ret == pytest.ExitCode.OK
    gone = [line for line in result.outlines if "is gone" in line]
    orphan = pytester.path.joinpath(BASELINES, "skills", "sql", "skill_meta.json", "haiku.json")
    assert gone == [
        f"sql on haiku: skills/sql/skill_meta.json is gone: delete the baseline, {orphan}"
    ]


def copy_baseline(recorded: Path, name: str, old: str, new: str) -> None:
    """Write a baseline again, with one change, as that of the skill in another folder."""
    file = recorded.parents[2] / name / "skill_meta.json" / recorded.name
    file.parent.mkdir(parents=True)
    file.write_text(recorded.read_text("utf-8").replace(old, new), "utf-8")


@pytest.mark.usefixtures("recorded")
def test_a_skill_with_another_name_in_the_same_place_has_its_baseline_still(
    script: Script, run_once: Run, pytester: pytest.Pytester
) -> None:
    args = script(**GOOD)
    text = pytester.path / "skills" / "csv" / "SKILL.md"
    text.write_text(text.read_text("utf-8").replace("name: csv", "name: sheets"), "utf-8")

    result = run_once(*args, COMPARE, LENIENT, "-W", "ignore")

    result.stdout.fnmatch_lines(["sheets on haiku: 19/20 with the skill, baseline 19/20, p = *"])


@pytest.mark.usefixtures("recorded")
def test_a_skill_that_moved_has_its_baseline_still(
    script: Script, run_once: Run, pytester: pytest.Pytester
) -> None:
    args = script(**GOOD)
    (pytester.path / "skills" / "csv").rename(pytester.path / "skills" / "tables")

    result = run_once(*args, COMPARE, LENIENT, "-W", "ignore")

    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["csv on haiku: 19/20 with the skill, baseline 19/20, p = *"])
    result.stdout.no_fnmatch_line("*is gone*")


@pytest.mark.usefixtures("recorded")
def test_a_baseline_is_nobodys_where_two_skills_could_have_been_moved(
    script: Script, run_once: Run, pytester: pytest.Pytester
) -> None:
    args = script(one="---------- ----------", two="---------- ----------")
    twice = (*args, COMPARE, LENIENT, "-W", "ignore", "--upskill-runs=5")
    shutil.copytree("skills/csv", "skills/b/csv")
    (pytester.path / "skills" / "csv").rename(pytester.path / "skills" / "a")

    result = run_once(*twice)

    for place in ("a", "b/csv"):
        result.stdout.fnmatch_lines([f"csv (skills/{place}) on haiku: no baseline: *"])


@pytest.mark.usefixtures("recorded")
def test_a_skill_of_the_same_name_elsewhere_neither_uses_nor_overwrites_a_baseline(
    script: Script, run_once: Run, recorded: Path, pytester: pytest.Pytester
) -> None:
    before = recorded.read_text("utf-8")
    args = script(one="---------- ----------", two="---------- ----------")
    shutil.copytree("skills", "others")

    compared = run_once("others", *args[1:], COMPARE, LENIENT)
    script(one="---------- ----------", two="---------- ----------")
    updated = run_once("others", *args[1:], UPDATE, LENIENT)

    assert compared.ret == NOT_MEASURED
    compared.stdout.fnmatch_lines(["csv on haiku: no baseline: *"])
    own = pytester.path.joinpath(BASELINES, "others", "csv", "skill_meta.json", "haiku.json")
    updated.stdout.fnmatch_lines([f"baseline of csv on haiku: {own} written, commit it"])
    assert recorded.read_text("utf-8") == before


def test_each_case_file_of_a_skill_has_a_baseline_of_its_own(
    write_skill: WriteSkill, run_once: Run, pytester: pytest.Pytester
) -> None:
    evals = write_skill() / "evals" / "evals.json"
    evals.parent.mkdir()
    case = {"prompt": QUESTION, "assertions": [{"type": "contains", "value": "37"}]}
    evals.write_text(json.dumps([case]), "utf-8")
    args = ("skills", "--upskill-models=offline")

    updated = run_once(*args, UPDATE)
    compared = run_once(*args, COMPARE)

    written = pytester.path.joinpath(BASELINES, "skills", "billing")
    assert {str(file.relative_to(written)) for file in written.rglob("offline.json")} == {
        "evals/evals.json/offline.json",
        "skill_meta.json/offline.json",
    }
    assert updated.ret == compared.ret == pytest.ExitCode.OK
    assert compared.stdout.str().count("1/1 with the skill, baseline 1/1") == 2


@pytest.fixture
def former(recorded: Path, pytester: pytest.Pytester) -> Path:
    """Write a baseline as format 1 did, named after the skill."""
    file = pytester.path.joinpath(BASELINES, "csv", "haiku.json")
    file.parent.mkdir()
    head = '"format": 1,\n "path": "skills/csv/skill_meta.json",'
    file.write_text(recorded.read_text("utf-8").replace('"format": 2,', head), "utf-8")
    recorded.unlink()
    return file


def test_a_file_of_the_former_format_is_used_by_its_case_file_until_it_is_replaced(
    script: Script, run_once: Run, former: Path, file: Path
) -> None:
    text = former.read_text("utf-8")
    args = script(**GOOD)

    used = run_once(*args, COMPARE, LENIENT)
    script(**GOOD)
    updated = run_once(*args, UPDATE, LENIENT)
    script(**GOOD)
    replaced = run_once(*args, COMPARE, LENIENT)

    used.stdout.fnmatch_lines(["csv on haiku: 19/20 with the skill, baseline 19/20, p = *"])
    updated.stdout.fnmatch_lines([f"baseline of csv on haiku: {file} written, commit it"])
    replaced.stdout.fnmatch_lines(
        [f"csv on haiku: {file} replaces it: delete the baseline, {former}"]
    )
    assert former.read_text("utf-8") == text


def test_a_file_of_the_former_format_of_another_case_file_is_left_alone(
    script: Script, run_once: Run, former: Path
) -> None:
    shutil.copytree("skills", "others")
    args = script(one="---------- ----------", two="---------- ----------")
    former.write_text(former.read_text("utf-8").replace("skills/csv", "others/csv"), "utf-8")

    result = run_once(*args, COMPARE, LENIENT)

    assert result.ret == NOT_MEASURED
    result.stdout.fnmatch_lines(["csv on haiku: no baseline: *"])


def test_a_case_that_the_former_format_cannot_tell_from_another_is_explained(
    script: Script, run_once: Run, former: Path
) -> None:
    digest = json.loads(former.read_text("utf-8"))["cases"][0]["grader"]
    text = former.read_text("utf-8").replace(digest, "another-grader", 1)
    former.write_text(text, "utf-8")

    result = run_once(*script(**GOOD), COMPARE, LENIENT)

    result.stdout.fnmatch_lines(
        [
            "csv on haiku: not compared, changed since the baseline: one",
            "csv on haiku: the baseline has format 1, in which 0, false, null and*",
        ]
    )


@pytest.mark.usefixtures("recorded")
def test_a_model_that_changed_makes_a_regression_a_warning(script: Script, run_once: Run) -> None:
    args = script(one="---------- ++++++++++", two="++++++++++ ----------")

    result = run_once(*args, COMPARE, LENIENT)

    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        [
            "csv on haiku: 10/20 with the skill, baseline 19/20, p < .001",
            "csv on haiku: warning: the model has changed: 10/20 without the skill, *",
        ]
    )


@pytest.mark.usefixtures("recorded")
def test_an_api_that_names_another_model_makes_a_regression_a_warning(
    script: Script, run_once: Run
) -> None:
    args = script(one="---------- ----------", two="++++++++++ ----------")
    args = tuple(arg.replace("haiku-1", "haiku-2") for arg in args)

    result = run_once(*args, COMPARE, LENIENT)

    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        ["* warning: the model is haiku-2 now, haiku-1 in the baseline: regressions are *"]
    )


@pytest.mark.parametrize("option", [UPDATE, COMPARE])
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("<<<<<<< HEAD\n", "not a baseline: restore it from git, or delete it and record one *"),
        ('{"format": 1}', "not a baseline: restore it from git, or delete it and record one *"),
        ('{"format": 3}', "format 3 is newer than this pytest-upskill reads (2): pip install *"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_line_and_stays(
    script: Script, run_once: Run, file: Path, *, option: str, text: str, problem: str
) -> None:
    file.parent.mkdir(parents=True)
    file.write_text(text, "utf-8")

    result = run_once(*script(**GOOD), option)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {file}: {problem}"])
    assert file.read_text("utf-8") == text


def test_no_name_leads_out_of_the_folder(tmp_path: Path) -> None:
    paths = ["../../etc/a.json", "/etc/a.json", "a/%2E%2E/a.json", "a b/a.json", "données/a.json"]
    models = ["..", ".hidden", "/etc", "a\\b", "a b", "../../etc"]

    files = {baseline_file(tmp_path, path, model) for path in paths for model in models}

    assert len(files) == len(paths) * len(models)
    assert all(file.is_relative_to(tmp_path) and ".." not in file.parts for file in files)
