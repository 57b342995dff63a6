"""The tutorial's commands, in their order, with scripted models behind Anthropic's interface."""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agents.scripted_agent import call, following
from tests.git_repository import git
from tests.loopback import Loopback, Received, Reply
from tests.pages import TUTORIAL, Command, check_shown, commands, fences
from tests.screen import Screen
from tests.shipped.workflows import shell

pytestmark = pytest.mark.slow

CASES = Path("skills/releases/skill_meta.json")
NEEDS_NO_TEST = ("pip ", "export ")
PROMISE = "You need to do nothing"


def proposal(name: str, question: str, right: str, wrong: str, quote: str) -> dict[str, Any]:
    return {
        "id": name,
        "input": question,
        "expected": {"contains": right},
        "quote": quote,
        "reference": f"It is {right}.",
        "alternatives": [right, f"We say {right} here."],
        "wrong": [f"It is {wrong}."],
    }


PROPOSALS = (
    proposal("name", "What is the first release of week 7 of 2027 called?", "r2707.1",
             "v7.1", "A release is called r, year, week, dot, number"),
    proposal("announce", "Where do I say that I am about to ship?", "#ship-log",
             "#general", "writes to #ship-log first"),
    proposal("friday", "How many of us have to agree at the end of the week?", "three",
             "two", "Three people approve on a Friday."),
    proposal("canary", "How long do we watch the small group of servers?", "40 minutes",
             "10 minutes", "It stays on the canary for 40 minutes."),
    proposal("undo", "Which command takes the last version off again?", "shipit back",
             "shipit undo", "The command shipit back undoes the latest one."),
    proposal("freeze", "When does our pause around Christmas begin?", "17 December",
             "24 December", "From 17 December to 2 January nothing is released."),
)  # fmt: skip
FACTS = {
    each["input"]: "rYYWW" if each["id"] == "name" else each["expected"]["contains"]
    for each in PROPOSALS
}
"""What a student has to be told, by question."""
LOAD = call("skill", name="releases")


class Models:
    """A teacher, a judge, and a student that knows what it is told, four of five times."""

    def __init__(self) -> None:
        self.proposals: list[dict[str, Any]] = [*PROPOSALS]
        self.asked: dict[tuple[str, bool], Iterator[int]] = defaultdict(itertools.count)
        self.agent = following(
            [LOAD, call("bash", command="echo r2707.1 > RELEASE"), "Done."],
            [call("bash", command="echo 2027-7 > RELEASE"), "Done."],
        )

    def __call__(self, received: Received) -> Reply | str:
        model = received.body["model"]
        if "opus" in model:
            return self.teach(received.user)
        if "sonnet" in model:
            return self.judge(received.user)
        tools = {tool["name"] for tool in received.body.get("tools", ())}
        if "write_file" in tools:
            return self.agent(received)
        if tools:
            return self.choose(str(received.body["messages"][0]["content"]))
        return self.answer(received)

    def teach(self, prompt: str) -> str:
        if "Propose" in prompt:
            proposals, self.proposals = self.proposals, []
            return json.dumps({"proposals": proposals})
        return str(next(each["reference"] for each in PROPOSALS if each["input"] in prompt))

    def judge(self, prompt: str) -> str:
        holds = PROMISE in prompt
        quote = PROMISE if holds else ""
        verdict = {"statement": 1, "quote": quote, "reason": "it says so", "holds": holds}
        return json.dumps({"verdicts": [verdict]})

    def choose(self, query: str) -> Reply | str:
        if "Load the skill greeting" in query:
            name = "greeting"
        elif "ship" in query:
            name = "releases"
        else:
            return "I just answer."
        block = {"type": "tool_use", "id": "t1", "name": "skill", "input": {"name": name}}
        return Reply(content=[block], stop="tool_use")

    def answer(self, received: Received) -> str:
        for question, fact in FACTS.items():
            if question in received.user:
                told = fact in received.system
                number = next(self.asked[question, told])
                right = next(e["reference"] for e in PROPOSALS if e["input"] == question)
                slips = "end of the week" in question and number % 5 == 0
                guesses = "Christmas" in question and number % 5 == 0
                knows = not slips if told else guesses
                return f"{right} ({number})" if knows else f"I do not know ({number})."
        told = "tell customers" in received.system
        number = next(self.asked["letter", told])
        said = PROMISE if told else "We are sorry"
        return f"Dear customers, we took the last version back. {said} ({number})."


@pytest.fixture
def repository(tmp_path: Path, loopback: Loopback, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose remote is next to it, where a key leads to the scripted models."""
    loopback.answer = Models()
    monkeypatch.setenv("ANTHROPIC_BASE_URL", loopback.url)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "Reader")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "reader@example.org")
    folder = tmp_path / "project"
    git(tmp_path, "init", "--quiet", "--bare", "--initial-branch=main", "remote.git")
    git(tmp_path, "init", "--quiet", "--initial-branch=main", "project")
    git(folder, "remote", "add", "origin", str(tmp_path / "remote.git"))
    return folder


@pytest.mark.needs("git")
def test_the_tutorial_leads_from_a_skill_to_a_gate(repository: Path) -> None:
    for fence in fences(TUTORIAL):
        if fence.title is not None:
            file = repository / fence.title
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(fence.text, "utf-8")
        elif fence.language == "json":
            add_cases(repository / CASES, f"[{fence.text}]")
        elif fence.language == "console":
            for command in commands(fence.text):
                run(command, repository)


def add_cases(file: Path, cases: str) -> None:
    """Add the cases of a page to the list in a case file, as its reader does."""
    document = json.loads(file.read_text("utf-8"))
    document["cases"] += json.loads(cases)
    file.write_text(json.dumps(document, indent=2), "utf-8")


def run(command: Command, folder: Path) -> None:
    """Run a command; what the page shows of its output has to come, line by line."""
    if command.text.startswith(NEEDS_NO_TEST):
        return
    if command.text == "pytest-upskill judge label":
        output, code = label(folder), 0
    else:
        process = shell(command.text, folder)
        output, code = process.stdout.splitlines(), process.returncode
    check_shown(command.shown, output, code)


def label(folder: Path) -> list[str]:
    """Label each answer at a terminal, by reading it."""
    file = json.loads((folder / "skills/releases/judge_labels.json").read_text("utf-8"))
    keys = ["y" if PROMISE in "\n".join(each["text"]) else "n" for each in file["answers"]]
    screen = Screen(["pytest-upskill", "judge", "label"], folder, columns=100, rows=40)
    try:
        screen.wait_for("[y] it holds")
        screen.type("".join(keys))
        return screen.wait_for_the_end()
    finally:
        screen.close()
