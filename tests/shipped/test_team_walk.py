"""A team lead reads the reports of pull requests: all say the same, and what to do."""

from __future__ import annotations

import html
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Run
from tests.git_repository import commit_all, git
from tests.loopback import Loopback, Received
from tests.reporting import report_command

pytestmark = [pytest.mark.slow, pytest.mark.needs("git")]

CASES = ("one", "two", "three", "four")
FILES = [f"--upskill-{name}=report.{name}" for name in ("json", "md", "html")]


def write_csv(folder: Path, rate: int, cases: tuple[str, ...] = CASES) -> None:
    """Write a skill with which so many of five runs of each case are right."""
    folder.mkdir(parents=True, exist_ok=True)
    head = f"---\nname: {folder.name}\ndescription: Use when a file is CSV.\n---\n"
    (folder / "SKILL.md").write_text(f"{head}{'Read it by rows.' * 9}\nRATE {rate}\n", "utf-8")
    entries = [{"id": case, "input": case, "expected": {"contains": "right"}} for case in cases]
    (folder / "skill_meta.json").write_text(json.dumps(entries), "utf-8")


@pytest.fixture
def lead(pytester: pytest.Pytester, loopback: Loopback, run_once: Run) -> Callable[[], Reading]:
    """Commit a skill that is always right on main, and switch to a branch; return its reader."""
    answered: dict[tuple[str, str], int] = {}

    def answer(received: Received) -> str:
        rate = re.search("RATE (.)", received.system)
        key = (rate[0] if rate else "", received.user)
        answered[key] = answered.get(key, -1) + 1
        return "right" if rate and answered[key] % 5 < int(rate[1]) else f"wrong {answered[key]}"

    loopback.answer = answer
    write_csv(pytester.path / "skills" / "csv", 5)
    commit_all(pytester.path, "main")
    git(pytester.path, "switch", "--quiet", "--create", "branch")

    def read() -> Reading:
        commit_all(pytester.path, "branch")
        result = run_once(
            "skills", f"--upskill-models=haiku=h@{loopback.openai_url}", "--upskill-runs=5",
            "--upskill-cache=off", "--upskill-compare=main", *FILES, "--junitxml=junit.xml",
        )  # fmt: skip
        return Reading(result)

    return read


class Reading:
    """The exit code of a pull request's run, and the text of each of its reports."""

    def __init__(self, result: pytest.RunResult) -> None:
        self.code = int(result.ret)
        page = html.unescape(re.sub("<[^>]*>", "", Path("report.html").read_text("utf-8")))
        self.report = json.loads(Path("report.json").read_text("utf-8"))
        self.texts = {
            "terminal": " ".join(result.outlines),
            "Markdown": Path("report.md").read_text("utf-8"),
            "HTML": page,
        }
        assert report_command(["report.json"]) == self.code

    def all_say(self, *texts: str) -> None:
        for name, text in self.texts.items():
            for wanted in texts:
                assert wanted in text, (name, wanted)


def test_a_skill_made_worse_is_red_though_its_cases_still_pass(
    lead: Callable[[], Reading], pytester: pytest.Pytester
) -> None:
    write_csv(pytester.path / "skills" / "csv", 3)

    reading = lead()

    assert reading.code == 1
    (entry,) = reading.report["entries"]
    assert (entry["figures"]["verdict"], entry["figures"]["cases.failed"]) == ("regression", 0)
    reading.all_say(
        "the skill became worse than main: one, two, three, four (all cases: 12/20 with the skill",
        "worse: two: 5/5 -> 3/5",
        "next: restore what the skill has lost; where that is right, correct the cases",
    )
    assert "became worse than main" in Path("junit.xml").read_text("utf-8")


def test_a_skill_made_better_is_green(
    lead: Callable[[], Reading], pytester: pytest.Pytester
) -> None:
    git(pytester.path, "switch", "--quiet", "main")
    write_csv(pytester.path / "skills" / "csv", 3)
    commit_all(pytester.path, "main")
    git(pytester.path, "switch", "--quiet", "branch")
    git(pytester.path, "reset", "--quiet", "--hard", "main")
    write_csv(pytester.path / "skills" / "csv", 5)

    reading = lead()

    assert reading.code == 0
    reading.all_say("20/20 with the skill, main 12/20")


def test_a_skill_that_breaks_a_case_names_it_and_the_next_step(
    lead: Callable[[], Reading], pytester: pytest.Pytester
) -> None:
    write_csv(pytester.path / "skills" / "csv", 2)

    reading = lead()

    assert reading.code == 1
    (entry,) = reading.report["entries"]
    assert entry["figures"]["cases.failed"] == len(CASES)
    reading.all_say("2 of 5 runs passed; more than half must")
    for name in ("Markdown", "HTML"):
        assert "4 of 4 cases failed with the skill" in reading.texts[name]
        assert "no skill hurts" not in reading.texts[name]  # it became worse
    reading.all_say("next: restore what the skill has lost")


def test_a_renamed_skill_is_compared_with_itself(
    lead: Callable[[], Reading], pytester: pytest.Pytester
) -> None:
    git(pytester.path, "mv", "skills/csv", "skills/tables")
    write_csv(pytester.path / "skills" / "tables", 3)

    reading = lead()

    assert reading.code == 1
    reading.all_say("became worse than main: one, two, three, four (all cases: 12/20")
    assert all("deleted" not in text for text in reading.texts.values())


def test_a_deleted_skill_leaves_nothing_to_measure(
    lead: Callable[[], Reading], pytester: pytest.Pytester
) -> None:
    shutil.rmtree(pytester.path / "skills" / "csv")
    (pytester.path / "skills" / "README.md").write_text("Nothing.", "utf-8")

    reading = lead()

    assert reading.code == pytest.ExitCode.NO_TESTS_COLLECTED
    reading.all_say(
        "skills/csv was deleted or moved away since main: no trial is left: see that this is meant"
    )
    assert "some of what changed may not be measured" in reading.texts["Markdown"]
    assert all("these 0 cases" not in text for text in reading.texts.values())


def test_a_new_skill_without_cases_is_named_with_the_command_that_writes_them(
    lead: Callable[[], Reading], pytester: pytest.Pytester
) -> None:
    new = pytester.path / "skills" / "toml"
    new.mkdir()
    (new / "SKILL.md").write_text("---\nname: toml\ndescription: TOML.\n---\nYes.\n", "utf-8")

    reading = lead()

    assert reading.code == 0
    reading.all_say(
        "toml has no cases: pytest-upskill init skills/toml writes a first skill_meta.json"
    )


def test_a_case_file_with_a_wrong_name_is_named_with_the_right_one(
    lead: Callable[[], Reading], pytester: pytest.Pytester
) -> None:
    new = pytester.path / "skills" / "toml"
    new.mkdir()
    (new / "SKILL.md").write_text("---\nname: toml\ndescription: TOML.\n---\nYes.\n", "utf-8")
    (new / "skills_meta.json").write_text("{}", "utf-8")

    reading = lead()

    reading.all_say("skills/toml/skills_meta.json is not read: rename it to skill_meta.json")
    assert all("toml has no cases" not in text for text in reading.texts.values())


def test_an_added_case_runs_with_both_versions(
    lead: Callable[[], Reading], pytester: pytest.Pytester
) -> None:
    write_csv(pytester.path / "skills" / "csv", 5, (*CASES, "five"))

    reading = lead()

    assert reading.code == 0
    reading.all_say("not compared")


def test_an_unchanged_skill_says_so(lead: Callable[[], Reading], pytester: pytest.Pytester) -> None:
    (pytester.path / "README.md").write_text("Words.", "utf-8")

    reading = lead()

    assert reading.code == 0
    reading.all_say("unchanged since main")
    assert all("these 0 cases" not in text for text in reading.texts.values())
