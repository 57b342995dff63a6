"""A judge that is uncalibrated, then corrected by labels, and uncalibrated again after an edit."""

from __future__ import annotations

import json
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.cases.judge_labels import LabelledAnswer
from pytest_upskill.commands.main import main
from pytest_upskill.grading.labels import answer_digest
from tests.conftest import Run, WriteSkill
from tests.loopback import Loopback, Received, Reply

pytestmark = pytest.mark.slow

KIND = "The answer is kind."
CASES = [
    {"id": f"case-{number}", "input": f"Be kind ({number})", "expected": {"judge": KIND}}
    for number in range(10)
]
JudgedRun = Callable[..., Any]


@pytest.fixture
def judged_run(write_skill: WriteSkill, without_sockets: Loopback, run_once: Run) -> JudgedRun:
    """Run the cases with a judge who passes a share of unkind answers with the skill.

    Of ten answers, nine are kind with the skill and four without it.
    """
    write_skill(*CASES)
    shares = {"lenient": 0.0, "kind": 0.0}
    asked = {"with it": 0, "alone": 0}

    def answer(received: Received) -> Reply:
        if received.body["model"] == "judge":
            serial = int(received.user.partition("number ")[2].partition(".")[0])
            lenient = "with it" in received.user and serial // 10 % 5 < 5 * shares["lenient"]
            holds = "lovely" in received.user or lenient
            quote = "I have to say" if holds else ""
            entry = {"statement": 1, "quote": quote, "reason": "so it is", "holds": holds}
            return Reply(text=json.dumps({"verdicts": [entry]}))
        arm = "with it" if "<skill" in received.system else "alone"
        share = shares["kind"] if arm == "with it" else 0.4
        serial = asked[arm]
        asked[arm] += 1
        said = "lovely" if serial % 10 < 10 * share else "dull"
        return Reply(text=f"I have to say that is {said}, {arm}, number {serial}.")

    without_sockets.answer = answer

    def judged_run(*more: str, lenient: float = 0.0, kind: float = 0.9) -> pytest.RunResult:
        shares.update(lenient=lenient, kind=kind)
        url = without_sockets.openai_url
        return run_once(
            "skills",
            f"--upskill-models=m=model@{url}",
            f"--upskill-judge=j=judge@{url}",
            "--upskill-runs=5",
            "--upskill-concurrency=1",
            "--upskill-json=report.json",
            *more,
        )

    return judged_run


def labels_file() -> Path:
    return Path("skills/billing/judge_labels.json")


def label(honestly: Callable[[str], bool] = lambda text: "lovely" in text) -> None:
    """Label every answer, as an author would."""
    file = json.loads(labels_file().read_text("utf-8"))
    for answer in file["answers"]:
        for each in answer["labels"]:
            each["holds"] = honestly("\n".join(answer["text"]))
    labels_file().write_text(json.dumps(file), "utf-8")


def label_a_run(
    judged_run: JudgedRun,
    honestly: Callable[[str], bool] = lambda text: "lovely" in text,
    **shares: float,
) -> None:
    """Run the cases, draw answers of the run, and label them."""
    judged_run(**shares)
    main(["judge", "draw", "report.json"])
    label(honestly)


def figures() -> dict[str, Any]:
    (entry,) = json.loads(Path("report.json").read_text("utf-8"))["entries"]
    found: dict[str, Any] = entry["figures"]
    return found


def test_a_lenient_judge_is_found_out_by_labels_until_the_skill_changes(
    judged_run: JudgedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    # A skill that does nothing, and a judge who favors it.
    alone = judged_run("--junitxml=junit.xml", lenient=0.6, kind=0.4)
    alone.stdout.fnmatch_lines(["*helps, uncalibrated*"])
    alone.stdout.fnmatch_lines(
        ["billing on m: helps by an uncalibrated judge: holds unless the judge favors the *"]
    )
    assert 'name="upskill.judge.tipping_point"' in Path("junit.xml").read_text("utf-8")
    judged = figures()["lift"]
    assert judged > 0.2

    assert main(["judge", "draw", "report.json"]) == 0
    drawn = json.loads(labels_file().read_text("utf-8"))
    assert len(drawn["answers"]) == 40
    assert "arm" not in json.dumps(drawn["answers"])
    capsys.readouterr()
    assert main(["judge", "check"]) == 1
    assert "40 answers, 0 labelled" in capsys.readouterr().out

    label()
    assert main(["judge", "check"]) == 0
    said = capsys.readouterr().out
    assert "m without the skill: accepts 100% " in said
    assert "the judge says that 'The answer is kind.' holds, not so the labels of " in said

    corrected = judged_run("--upskill-cache=replay", lenient=0.6, kind=0.4)
    corrected.stdout.fnmatch_lines(["*, judged +*  too few runs*", "*points: * better*, as judged"])
    found = figures()
    assert found["verdict"] == "too few runs"
    assert found["judge.calibrated"]
    assert found["lift"] == judged
    assert found["lift.corrected"] < judged / 2

    skill = Path("skills/billing/SKILL.md")
    skill.write_text(skill.read_text("utf-8") + "\nBe kinder.\n", "utf-8")
    edited = judged_run(lenient=0.6, kind=0.4)
    edited.stdout.fnmatch_lines(
        ["billing on m: judge: labels are for an older skill: SKILL.md has changed since: draw *"]
    )
    capsys.readouterr()
    assert main(["judge", "draw", "report.json"]) == 0
    said = capsys.readouterr().out
    assert "40 answers of m, 20 of them labelled already" in said


def test_a_judge_who_is_right_keeps_its_verdict_and_its_labels(
    judged_run: JudgedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    label_a_run(judged_run)

    result = judged_run(
        "--upskill-cache=replay", "--upskill-md=report.md", "--upskill-html=report.html"
    )
    main(["judge", "draw", "report.json"])

    result.stdout.fnmatch_lines(["* helps*"])
    assert "uncalibrated" not in result.stdout.str()
    found = figures()
    assert found["lift.corrected"] == found["lift"]
    for report in ("report.md", "report.html"):
        assert "], judged +" in Path(report).read_text("utf-8")
    assert "labelled already" in capsys.readouterr().out


def test_more_answers_of_a_run_include_those_that_are_labelled(
    judged_run: JudgedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    label_a_run(judged_run)
    capsys.readouterr()

    main(["judge", "draw", "report.json", "--answers=60"])

    said = capsys.readouterr().out
    assert ", 35 of them labelled already" in said
    assert "dropped" not in said


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"judge": "openai:other"}, "labels are for the judge openai:other, not openai:judge"),
        (
            {"prompt": "0" * 16},
            "labels are from another version, with other instructions for the judge",
        ),
        ({"models": {"m": "openai:other"}}, "judge_labels.json contains no answer of m as "),
        (
            {"served": ["judge-2026-01"]},
            "labels are for the judge openai:judge when it was judge-2026-01, not judge",
        ),
    ],
)
def test_what_changed_since_the_labels_were_drawn_is_one_line(
    judged_run: JudgedRun, change: dict[str, Any], line: str
) -> None:
    label_a_run(judged_run)
    file = json.loads(labels_file().read_text("utf-8"))
    labels_file().write_text(json.dumps(file | change), "utf-8")

    result = judged_run("--upskill-cache=replay")

    told = [each for each in result.outlines if line in each]
    assert len(told) == 1
    assert "helps, uncalibrated" in result.stdout.str()


def test_a_changed_statement_drops_its_labels(
    judged_run: JudgedRun, write_skill: WriteSkill
) -> None:
    label_a_run(judged_run)
    changed = [case | {"expected": {"judge": "It is polite."}} for case in CASES]
    write_skill(*changed[:1], *CASES[1:])

    result = judged_run()

    why = "labels of case-0 do not apply: its question or its checks have changed since"
    result.stdout.fnmatch_lines([f"billing on m: judge: {why}: draw again *"])


def test_an_answer_that_ends_with_empty_lines_is_the_one_in_the_labels_file() -> None:
    answer = "It is 37.\n\n"

    listed = LabelledAnswer(
        id=1, case="a", model="m", question="?", text=answer.splitlines(), labels=[]
    )

    assert answer_digest(listed.full_text) == answer_digest(answer)


@pytest.mark.parametrize(
    ("args", "cure"),
    [
        ([], "run pytest with --upskill-judge"),
        (["--upskill-judge", "j=judge@{}"], "its judge decided none, so name another by *"),
    ],
)
def test_there_is_nothing_to_draw_where_no_judge_decided(
    args: list[str],
    cure: str,
    write_skill: WriteSkill,
    run_once: Run,
    loopback: Loopback,
    model: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_skill({**CASES[0], "expected": {"judge": KIND, "contains": "sea"}})
    loopback.answer = lambda _: "The sea is kind."
    options = [each.format(loopback.openai_url) for each in args]
    run_once("--upskill-models", model, *options, "--upskill-json=report.json", "skills")

    assert main(["judge", "draw", "report.json"]) != 0

    expected = f"*report.json: no answer in it that a judge decided: {cure}"
    assert any(fnmatch(line, expected) for line in capsys.readouterr().err.splitlines())
