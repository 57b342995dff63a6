"""What `--upskill-baseline-update` writes, and when it writes nothing."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_upskill.cases.load import load_skills
from pytest_upskill.checks.text import Check
from pytest_upskill.figures.baseline import path_of
from pytest_upskill.models import parse_model
from pytest_upskill.trials.digests import grader_digest
from pytest_upskill.trials.trial import plan
from tests.conftest import Run, WriteSkill
from tests.figures.conftest import COMPARE, GOOD, LENIENT, UPDATE
from tests.scripted_model import Script


def test_an_update_writes_one_line_of_counts_for_each_case(
    script: Script, run: Run, file: Path
) -> None:
    result = run(*script(**GOOD), UPDATE, LENIENT, "-q")

    result.stdout.fnmatch_lines(
        [f"baseline of csv on haiku: {file} written (2 cases, 40 runs), commit it"]
    )
    lines = file.read_text("utf-8").split("\n")
    assert lines[1:5] == [' "format": 1,', ' "skill": "csv",', ' "model": "haiku",', lines[4]]
    one, two = (json.loads(line.strip().rstrip(",")) for line in lines[-5:-3])
    assert [one[name] for name in ("id", "with_skill", "without_skill")] == [
        "one",
        {"passes": 10, "runs": 10},
        {"passes": 0, "runs": 10},
    ]
    assert (two["id"], two["with_skill"]["passes"]) == ("two", 9)
    assert lines[-1] == ""
    assert json.loads("\n".join(lines))["served"] == ["haiku-1"]


@pytest.mark.parametrize("digest", ["", "another-grader"])
def test_the_run_that_records_a_baseline_gives_no_advice_to_record_one(
    script: Script, run_once: Run, recorded: Path, digest: str
) -> None:
    text = recorded.read_text("utf-8")
    recorded.write_text(re.sub('"grader": *"[^"]*"', f'"grader": "{digest}"', text), "utf-8")
    if not digest:
        recorded.unlink()

    result = run_once(*script(**GOOD), COMPARE, UPDATE, LENIENT, "--upskill-md=r.md")

    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["baseline of csv on haiku: * written (*"])
    assert "record one" not in f"{result.stdout.str()}{Path('r.md').read_text('utf-8')}"


def test_the_same_counts_leave_the_file_as_it_is(
    script: Script, run_once: Run, recorded: Path
) -> None:
    text = recorded.read_text("utf-8").replace('"date": "', '"date": "1999-')
    recorded.write_text(text, "utf-8")

    result = run_once(*script(**GOOD), UPDATE, LENIENT)

    result.stdout.fnmatch_lines([f"baseline of csv on haiku: {recorded} is up to date"])
    assert recorded.read_text("utf-8") == text


def test_an_update_says_that_it_leaves_fewer_runs_than_there_were(
    script: Script, run_once: Run, recorded: Path
) -> None:
    result = run_once(*script(one="+ -", two="+ -"), UPDATE, LENIENT, "--upskill-runs=1")

    stored = "2 cases, 4 runs, fewer than before: 40"
    result.stdout.fnmatch_lines(
        [f"baseline of csv on haiku: {recorded} written ({stored}), commit it"]
    )
    assert '"runs": 1}' in recorded.read_text("utf-8")


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
    script: Script, run_once: Run, file: Path, quiet: str
) -> None:
    args = script(**GOOD)
    folder = file.parents[3]
    folder.parent.mkdir()
    folder.touch()

    result = run_once(*args, UPDATE, LENIENT, quiet)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.assert_outcomes(passed=5)
    result.stdout.fnmatch_lines([f"no baseline written of csv on haiku: {file}: *Not a directory*"])


def test_nothing_is_written_without_being_asked(script: Script, run_once: Run) -> None:
    run_once(*script(**GOOD), COMPARE, LENIENT)

    assert not Path(".upskill").exists()


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


def kinds_of(kind: type[Check]) -> Iterator[type[Check]]:
    for below in kind.__subclasses__():
        yield below
        yield from kinds_of(below)


def test_no_two_checks_have_one_name_and_the_same_fields() -> None:
    kinds = {kind.__qualname__: kind for kind in kinds_of(Check)}
    names = {each: getattr(kind, "name", None) for each, kind in kinds.items()}

    known = [
        (name, *inspect.signature(kinds[each]).parameters)
        for each, name in names.items()
        if isinstance(name, str)
    ]

    assert {"run", "contains", "judge"} < {name for name, *_ in known}
    assert len(known) == len(set(known))


@pytest.mark.parametrize("option", [UPDATE, COMPARE])
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("<<<<<<< HEAD\n", "not a baseline: restore it from git, or delete it and record one *"),
        ('{"format": 1}', "not a baseline: restore it from git, or delete it and record one *"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_in_one_line_and_kept(
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

    files = {tmp_path / path_of(path, model, chooses=False) for path in paths for model in models}

    assert len(files) == len(paths) * len(models)
    assert all(file.is_relative_to(tmp_path) and ".." not in file.parts for file in files)
