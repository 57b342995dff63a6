"""What a team reads of a pull request: in Markdown and HTML is what the terminal says."""

from __future__ import annotations

import json
from html import unescape
from pathlib import Path

import pytest

from pytest_upskill.report.exit_code import NOT_MEASURED
from tests.conftest import Run, WriteSkill
from tests.git_repository import commit_all
from tests.scripted_model import Script

REPORTS = ("--upskill-md=r.md", "--upskill-html=r.html", "--upskill-json=r.json")
OFFLINE = ("--upskill-models=offline", *REPORTS, "skills")


def pages() -> tuple[str, str]:
    return Path("r.md").read_text("utf-8"), unescape(Path("r.html").read_text("utf-8"))


def title() -> str:
    return pages()[0].splitlines()[1].removeprefix("### ").replace("`", "")


def test_a_file_that_cannot_be_read_is_named_with_its_mistakes(
    write_skill: WriteSkill, pytester: pytest.Pytester, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_OUTPUT", str(Path("outputs")))
    write_skill()
    write_skill(name="shipping")
    pytester.path.joinpath("skills/shipping/SKILL.md").write_text("---\nname: [\n---\n", "utf-8")
    pytester.path.joinpath("skills/test_it.py").write_text("import nothing_like_it\n", "utf-8")

    result = run(*OFFLINE)

    assert result.ret != pytest.ExitCode.OK
    (line,) = {line for line in result.outlines if line.startswith("skills/shipping/SKILL.md:")}
    for page in pages():
        assert line in page
        assert "skills/test_it.py: it cannot be imported" in page
        assert "2 files cannot be used" in page
        assert "other tests" not in page
        assert "see the output" not in page
    (session,) = json.loads(Path("r.json").read_text("utf-8"))["sessions"]
    assert line in session["unreadable"]
    assert "verdict=unusable files\n" in Path("outputs").read_text("utf-8")


@pytest.mark.needs("git")
def test_a_broken_file_beside_unchanged_skills_is_something_to_measure(
    repository: Path, write_skill: WriteSkill, run_once: Run
) -> None:
    write_skill(name="shipping")
    repository.joinpath("skills/shipping/skill_meta.json").write_text("{", "utf-8")

    result = run_once(*OFFLINE, "--upskill-changed-since=main")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert title() == "\u274c 1 file cannot be used, not everything was measured"
    result.stdout.no_fnmatch_line("*nothing to run*")


@pytest.mark.needs("git")
def test_a_changed_skill_without_cases_is_in_the_title_and_gets_no_tick(
    repository: Path, run_once: Run
) -> None:
    new = repository / "skills" / "hiring"
    new.mkdir()
    new.joinpath("SKILL.md").write_text(
        "---\nname: hiring\ndescription: How we hire.\n---\nAsk.\n", "utf-8"
    )

    result = run_once(*OFFLINE, "--upskill-changed-since=main", "--upskill-compare=main")

    assert result.ret == pytest.ExitCode.OK
    nothing = "Nothing to measure: 1 skill unchanged since main"
    assert (
        title() == f"\u2754 {nothing}, 1 changed skill is not fully measured (hiring has no cases)"
    )
    assert '<div class="banner open">' in pages()[1]


def test_a_changed_skill_that_nothing_could_measure_is_not_green(
    repository: Path, run_once: Run, write_skill: WriteSkill
) -> None:
    judged = {"id": "polite", "input": "Hello?", "expected": {"judge": "It is polite."}}
    folder = write_skill(judged, name="shipping")
    commit_all(repository)
    assert run_once(*OFFLINE, "--upskill-compare=HEAD").ret == pytest.ExitCode.OK
    file = folder / "SKILL.md"
    file.write_text(f"{file.read_text('utf-8')}More.\n", "utf-8")

    result = run_once(*OFFLINE, "--upskill-compare=HEAD")

    assert result.ret == NOT_MEASURED
    result.stdout.fnmatch_lines(
        ["exit code 75: nothing was measured of what changed in shipping: 1 case has only *"]
    )
    assert title().startswith("\u2754 ")


def test_removed_and_changed_cases_are_in_the_title_and_get_no_tick(
    repository: Path, run_once: Run, write_skill: WriteSkill
) -> None:
    cases = [{"id": name, "input": "How long?", "expected": {"regex": "."}} for name in "ab"]
    write_skill(*cases)
    commit_all(repository)
    write_skill(*cases[:1])

    result = run_once(*OFFLINE, "--upskill-compare=HEAD")

    assert result.ret == pytest.ExitCode.OK
    assert title().startswith("\u2754 ")
    assert title().endswith(", cases removed or changed in 1 skill")


@pytest.mark.usefixtures("skill")
def test_a_replay_without_recordings_says_how_to_make_them_and_who(
    run_once: Run, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_BASE_REF", "main")
    run_once("--upskill-models", model, "--upskill-cache=replay", *REPORTS, "skills")

    for page in pages():
        assert "2 trials not recorded: no recording in " in page
        assert f"--upskill-models {model} --upskill-cache=auto skills" in page
        record = "record it (without a key, a maintainer does): "
        assert f"{record}git fetch && git merge origin/main && pytest" in page


def test_a_case_that_only_a_judge_could_decide_says_how_to_name_one(
    write_skill: WriteSkill, run_once: Run
) -> None:
    file = write_skill() / "skill_meta.json"
    meta = json.loads(file.read_text("utf-8"))
    judged = {"id": "polite", "input": "Hello?", "expected": {"judge": "It is polite."}}
    meta["cases"].append(judged)
    file.write_text(json.dumps(meta), "utf-8")

    run_once(*OFFLINE)

    line = "skipped: 1 case has only statements for a judge: add --upskill-judge MODEL"
    assert all(line in page for page in pages())


def test_another_gate_is_named_as_another_case_is(
    repository: Path, run_once: Run, write_skill: WriteSkill
) -> None:
    case = {"id": "a", "input": "How long?", "expected": {"regex": "."}}
    write_skill(case, gate={"min_mean_pass_rate": 0.9})
    commit_all(repository)
    write_skill(case)

    result = run_once(*OFFLINE, "--upskill-compare=HEAD")

    result.stdout.fnmatch_lines(["*changed: the gate: a worse skill may look better, *"])
    assert title().startswith("\u2754 ")


def test_a_case_that_fell_clearly_is_not_called_chance_though_the_skill_is_no_worse(
    run_once: Run, script: Script, pytester: pytest.Pytester
) -> None:
    args = script(lost="----- ----- +++++", unsure="-++-- ----- +-+++", found="+++++ ----- -----")
    file = pytester.path / "skills" / "csv" / "SKILL.md"
    new = file.read_text("utf-8")
    file.write_text(f"{new}OLD\n", "utf-8")
    commit_all(pytester.path)
    file.write_text(new, "utf-8")

    run_once(*args, "--upskill-compare=HEAD", "--upskill-md=r.md")

    page = Path("r.md").read_text("utf-8")
    assert "; at HEAD it passed 5/5`\n" in page
    assert "; at HEAD it passed 4/5, not clearly better, so this may be chance`\n" in page


def test_a_fact_that_offline_no_longer_finds_is_not_called_chance(
    run_once: Run, write_skill: WriteSkill, pytester: pytest.Pytester
) -> None:
    folder = write_skill()
    commit_all(pytester.path)
    file = folder / "SKILL.md"
    file.write_text(file.read_text("utf-8").replace("37", "thirty"), "utf-8")

    run_once(*OFFLINE, "--upskill-compare=HEAD")

    assert "; at HEAD it passed 1/1`\n" in Path("r.md").read_text("utf-8")
