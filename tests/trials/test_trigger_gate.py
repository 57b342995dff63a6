"""When the gate of triggers fails: by limits, against a baseline, against a git ref."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_upskill.report.exit_code import NOT_MEASURED
from tests.conftest import Run, WriteSkill
from tests.git_repository import commit_all, git
from tests.loopback import Loopback, Received, Reply
from tests.trials.choosing import choosing, choosing_by, queries, took


@pytest.mark.parametrize(
    "limits",
    [
        (("--upskill-min-recall", "0.8"), "*: recall is under 80% (recall 75% *"),
        (("--upskill-max-false-triggers", "0.1"), "*: false triggers are over 10% (*"),
        (("--upskill-min-recall", "0.7", "--upskill-max-false-triggers", "0.2"), None),
    ],
)
def test_the_gate_fails_beyond_its_limits(
    run_once: Run,
    write_skill: WriteSkill,
    loopback: Loopback,
    model: str,
    limits: tuple[tuple[str, ...], str | None],
) -> None:
    options, problem = limits
    write_skill(*queries(4, 5), defaults={"min_pass_rate": 0})
    loopback.answer = choosing({f"Query {number}.": took("billing") for number in (0, 1, 2, 4)})

    result = run_once("--upskill-models", model, *options, "--junit-xml", "j.xml", "skills")

    result.assert_outcomes(passed=9 + (problem is None), failed=int(problem is not None))
    if problem:
        result.stdout.fnmatch_lines([problem])
    junit = Path("j.xml").read_text("utf-8")
    assert '<property name="upskill.trigger.recall" value="0.75"/>' in junit.replace(" />", "/>")
    assert 'name="upskill.trigger.taken" value="none"' in junit


def test_the_limit_of_the_case_file_precedes_that_of_the_option(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback, model: str
) -> None:
    write_skill(*queries(4, 0), defaults={"min_pass_rate": 0}, gate={"min_recall": 0.5})
    loopback.answer = choosing({f"Query {number}.": took("billing") for number in (0, 1)})

    result = run_once("--upskill-models", model, "--upskill-min-recall", "0.9", "skills")

    result.assert_outcomes(passed=5)


def test_a_comparison_of_triggers_without_any_baseline_is_not_green_and_says_how_to_record_one(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback, model: str
) -> None:
    write_skill(*queries(1, 0))
    loopback.answer = choosing({"Query 0.": took("billing")})
    args = ("--upskill-models", model, "--upskill-compare", "baseline", "-q", "skills")

    result = run_once(*args, "--upskill-md", "r.md")

    assert result.ret == NOT_MEASURED
    result.stdout.fnmatch_lines(
        ["exit code 75: nothing was compared with the baseline: *: no trigger baseline: *"]
    )
    assert "not everything was measured" in Path("r.md").read_text("utf-8").splitlines()[1]


def test_a_baseline_of_triggers_alone_does_not_stand_for_that_of_the_lift(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback, model: str
) -> None:
    args = ("--upskill-models", model, "skills")
    loopback.answer = choosing({"Query 0.": took("billing")})
    write_skill(*queries(1, 0))
    run_once(*args, "--upskill-baseline-update")
    write_skill(
        *queries(1, 0),
        {"id": "lift", "input": "Why?", "expected": {"contains": "x"}},
        defaults={"min_pass_rate": 0},
    )

    result = run_once(*args, "--upskill-compare", "baseline")

    assert result.ret == NOT_MEASURED
    result.stdout.fnmatch_lines(["exit code 75: nothing was compared with the baseline: *"])


def test_a_worse_choice_is_caught_against_the_baseline_whichever_description_changed(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback, model: str
) -> None:
    folder = write_skill(*queries(6, 0), defaults={"min_pass_rate": 0})

    def by_description(received: Received) -> Reply | str:
        system = received.system
        query = received.body["messages"][1]["content"]
        if "<name>thief</name>" in system and query != "Query 0.":
            return took("thief")
        good = "Use when a test asks." in system
        return took("billing") if good or query == "Query 0." else "No."

    loopback.answer = choosing_by(by_description)
    args = ("--upskill-models", model, "--upskill-runs", "2", "skills")
    written = run_once(*args, "--upskill-baseline-update")
    same = run_once(*args, "--upskill-compare", "baseline")
    text = (folder / "SKILL.md").read_text("utf-8").replace("Use when a test asks.", "Misc.")
    (folder / "SKILL.md").write_text(text, "utf-8")

    worse = run_once(*args, "--upskill-compare", "baseline", "--upskill-md", "r.md")

    text = text.replace("Misc.", "Use when a test asks.")
    (folder / "SKILL.md").write_text(text, "utf-8")
    (write_skill(name="thief") / "skill_meta.json").unlink()
    taken = run_once(*args, "--upskill-compare", "baseline")

    written.stdout.fnmatch_lines(["trigger baseline of billing on m: * written (*), commit it"])
    same.stdout.fnmatch_lines(["* +0 points *, not worse (12/12 runs right, baseline 12/12)"])
    assert same.ret == 0
    worse.assert_outcomes(passed=6, failed=1)
    worse.stdout.fnmatch_lines(
        ["*the choice became worse than the baseline: q1, *2/12 runs right, baseline 12/12, p*"]
    )
    page = Path("r.md").read_text("utf-8")
    assert "Measured on 6 queries, 2 runs of each: " in page
    assert "became worse than the baseline" in page
    assert "chose no skill instead of billing (10 runs)" in page
    taken.stdout.fnmatch_lines(
        ["*chose thief instead of billing*", "*how it differs from a skill that is chosen instead*"]
    )


@pytest.mark.needs("git")
def test_a_description_made_worse_on_a_branch_is_red_and_a_body_made_worse_is_not(
    run_once: Run,
    write_skill: WriteSkill,
    pytester: pytest.Pytester,
    loopback: Loopback,
    model: str,
) -> None:
    folder = write_skill(*queries(6, 2), defaults={"min_pass_rate": 0})
    commit_all(pytester.path)
    git(pytester.path, "switch", "--quiet", "--create", "branch")

    def by_description(received: Received) -> Reply | str:
        good = "Use when a test asks." in received.system
        wanted = received.body["messages"][1]["content"] in {f"Query {n}." for n in range(6)}
        return took("billing") if good and wanted else "No."

    loopback.answer = choosing_by(by_description)
    args = ("--upskill-models", model, "--upskill-compare", "main", "skills")
    text = (folder / "SKILL.md").read_text("utf-8")
    (folder / "SKILL.md").write_text(f"{text}More.\n", "utf-8")
    body = run_once(*args)
    (folder / "SKILL.md").write_text(text.replace("Use when a test asks.", "Misc."), "utf-8")

    worse = run_once(*args)

    body.assert_outcomes(passed=9)
    body.stdout.fnmatch_lines(["*no description changed since main: not compared"])
    worse.assert_outcomes(passed=16, failed=1)
    worse.stdout.fnmatch_lines(
        ["*the choice became worse than main: q0, *2/8 runs right, main 8/8, p*"]
    )
    assert sum("<name>greeting</name>" in each.system for each in loopback.requests) == 1


@pytest.mark.needs("git")
@pytest.mark.parametrize("how", ["alone", "with a word for the other", "in the catalogue", "new"])
def test_a_description_that_takes_the_queries_of_another_skill_is_red(
    run_once: Run,
    write_skill: WriteSkill,
    pytester: pytest.Pytester,
    loopback: Loopback,
    model: str,
    how: str,
) -> None:
    billing = write_skill(*queries(6, 0), defaults={"min_pass_rate": 0})
    if how != "new":
        (write_skill(name="thief") / "skill_meta.json").unlink()
    if how == "in the catalogue":
        run_once("--upskill-catalogue-update", "skills")
    commit_all(pytester.path)
    git(pytester.path, "switch", "--quiet", "--create", "branch")
    thief = write_skill(name="thief")
    (thief / "skill_meta.json").unlink()
    text = (thief / "SKILL.md").read_text("utf-8")
    (thief / "SKILL.md").write_text(text.replace("when a test asks", "for all queries"), "utf-8")
    if how == "with a word for the other":
        text = (billing / "SKILL.md").read_text("utf-8")
        (billing / "SKILL.md").write_text(text.replace("Facts", "All facts"), "utf-8")
    if how == "in the catalogue":
        run_once("--upskill-catalogue-update", "skills")

    def by_description(received: Received) -> Reply | str:
        return took("thief" if "Use for all queries." in received.system else "billing")

    loopback.answer = choosing_by(by_description)

    result = run_once("--upskill-models", model, "--upskill-compare", "main", "skills")

    result.stdout.fnmatch_lines(
        ["*the choice became worse than main: q0, *0/6 runs right, main 6/6, p*"]
    )
    result.assert_outcomes(passed=12, failed=1, skipped=1)  # the thief has no cases


@pytest.mark.needs("git")
def test_a_skill_that_is_moved_next_to_one_that_takes_its_queries_is_red(
    run_once: Run,
    write_skill: WriteSkill,
    pytester: pytest.Pytester,
    loopback: Loopback,
    model: str,
) -> None:
    folder = write_skill(*queries(6, 0), defaults={"min_pass_rate": 0})
    (write_skill(name="ops/thief") / "skill_meta.json").unlink()
    commit_all(pytester.path)
    git(pytester.path, "switch", "--quiet", "--create", "branch")
    folder.rename(pytester.path / "skills" / "ops" / "billing")
    commit_all(pytester.path)

    def by_catalogue(received: Received) -> Reply | str:
        return took("thief" if "thief" in received.system else "billing")

    loopback.answer = choosing_by(by_catalogue)

    result = run_once("--upskill-models", model, "--upskill-compare", "main", "skills")

    result.stdout.fnmatch_lines(
        ["*the choice became worse than main: q0, *0/6 runs right, main 6/6, p*"]
    )
    limited = run_once(
        "--upskill-models", model, "--upskill-compare=main", "--upskill-min-recall=0.5", "skills"
    )
    assert limited.stdout.str().count("say in each description") == 1


@pytest.mark.needs("git")
def test_a_query_that_expects_a_new_skill_is_not_asked_without_it(
    run_once: Run,
    write_skill: WriteSkill,
    pytester: pytest.Pytester,
    loopback: Loopback,
    model: str,
) -> None:
    write_skill({"id": "a", "input": "Send it.", "expected_skill": "new"}, *queries(1, 0))
    commit_all(pytester.path)
    git(pytester.path, "switch", "--quiet", "--create", "branch")
    (write_skill(name="new") / "skill_meta.json").unlink()
    loopback.answer = choosing({"Send it.": took("new"), "Query 0.": took("billing")})

    result = run_once("--upskill-models", model, "--upskill-compare", "main", "skills")

    # Two queries, one of them with the old catalogue too, a gate, and a skill without cases.
    result.assert_outcomes(passed=4, skipped=1)
    result.stdout.no_fnmatch_line("*skipped:*")


@pytest.mark.needs("git")
def test_a_query_whose_skill_was_renamed_is_a_lost_case(
    run_once: Run,
    write_skill: WriteSkill,
    pytester: pytest.Pytester,
    loopback: Loopback,
    model: str,
) -> None:
    query = {"id": "index", "input": "Speed it up.", "expected_skill": "databases"}
    answered = {"id": "why", "input": "Why?", "expected": {"contains": "answer"}}
    write_skill(answered, query, *queries(1, 0))
    databases = write_skill(answered, name="databases")
    commit_all(pytester.path)
    git(pytester.path, "switch", "--quiet", "--create", "branch")
    git(pytester.path, "mv", "skills/databases", "skills/postgres")
    text = databases.with_name("postgres") / "SKILL.md"
    text.write_text(text.read_text("utf-8").replace("name: databases", "name: postgres"), "utf-8")
    loopback.answer = choosing({"Query 0.": took("billing"), "Speed it up.": took("databases")})

    branch = ("--upskill-compare=main", "--upskill-changed-since=main", "skills")
    report = "--upskill-md=report.md"

    result = run_once("--upskill-models", model, *branch, report)
    strict = run_once("--upskill-models", model, *branch, "--upskill-fail-on=cases")

    result.stdout.fnmatch_lines(
        [
            "skipped: 1 case: expects 'databases', which is not in the catalogue: *",
            "*billing::index was skipped or deselected, and so not measured",
        ]
    )
    page = Path("report.md").read_text("utf-8")
    assert "✅" not in page
    assert "billing::index was skipped" in page
    assert result.ret == pytest.ExitCode.OK
    assert strict.ret == pytest.ExitCode.TESTS_FAILED
