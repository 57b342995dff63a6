"""Every command line of upskill's published texts, with pytest-upskill in place of upskill.

They are those of its README and of its announcement, typed in a terminal as they stand, against a
local server in place of the hosts. Only ``<agent-trace>.md`` is the name of a file here.
"""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.cases.skill import Case
from pytest_upskill.commands.main import main
from pytest_upskill.teacher.acceptance import split_cases
from tests.conftest import Run
from tests.loopback import Loopback, Received
from tests.teaching import BAYS, HEAD, adding, case, code, facts, line, proposed

pytestmark = pytest.mark.slow

GLM = "unsloth/GLM-4.7-Flash-GGUF:Q4_0"
LOCAL = "http://localhost:8080/v1"

NEW, BETTER = r"baseline .* with skill .*\(\+\d+%\).* Saved to \./skills/\S+", r"written: skills/"
"""How a command ends that writes a skill, and one that improves one."""

GENERATIONS = {
    'generate "write good git commit messages"': NEW,
    'generate "document the pattern" --from ./trace.md': NEW,
    'generate "document the pattern" --from ./trace.json': NEW,
    'generate "write good git commit messages" --model sonnet --eval-model haiku': NEW,
    'generate "parse JSON Schema files"': NEW,
    'generate "write git commits" --model sonnet --eval-model haiku': NEW,
    'generate "add more error handling examples" --from ./skills/api-errors/': BETTER,
    'generate "parse YAML" --no-eval': r"^(?!.*baseline).*Saved to \./skills/skill-\d+",
    'generate "write nvidia kernels" --from ./trace.md': NEW,
    f'generate "parse YAML" --model opus --eval-model "{GLM}" --eval-base-url {LOCAL}': NEW,
    'generate "build optimized CUDA kernels for PyTorch using HuggingFace kernel-builder"': NEW,
    'generate "write kernels" —-from agent-trace.md': NEW,
    (
        'generate "add more error handling and edge cases" '
        "--from ./skills/kernel-builder-cuda-kernels/"
    ): BETTER,
    "generate \N{EN DASH}from ./skills/my-skill/": BETTER,
    'generate "parse YAML" -e "a: 1 -> {a: 1}" -o ./skills/yaml': NEW,
}
"""Command lines that write or improve a skill, and how they end."""

EVALUATIONS = {
    "eval ./skills/git-commit-messages/ -m haiku -m sonnet": ("haiku", "sonnet"),
    "eval ./skills/my-skill/": ("haiku",),
    "eval ./skills/my-skill/ -v": ("haiku",),
    "eval ./skills/my-skill/ --tests ./tests.json": ("haiku",),
    "eval ./skills/my-skill/ -m haiku": ("haiku",),
    "eval ./skills/my-skill/ -m haiku -m sonnet": ("haiku", "sonnet"),
    "eval ./skills/my-skill/ -m haiku -m sonnet --runs 5": ("haiku", "sonnet"),
    "eval ./skills/my-skill/ -m generic.my-model": ("generic.my-model",),
    "eval ./skills/my-skill/ --no-baseline": ("haiku",),
    "eval ./skills/my-skill/ -m haiku --runs 5": ("haiku",),
    "eval ./skills/my-skill/ --no-log-runs": ("haiku",),
    "eval ./skills/my-skill/ --model generic.llama3.2:latest": ("generic.llama3.2-latest",),
    "eval ./skills/my-skill/ --model generic.my-model": ("generic.my-model",),
    f'eval ./skills/my-skill/ --model "{GLM}" --base-url {LOCAL}': ("GLM-4.7-Flash-GGUF-Q4_0",),
    f"eval ./skills/my-skill/ --model my-model --base-url {LOCAL}": ("my-model",),
    "eval ./skills/my-skill/ --model haiku --model sonnet": ("haiku", "sonnet"),
    "eval ./skills/kernel-builder-cuda-kernels/ --model haiku --m kimi --runs 5": ("haiku", "kimi"),
    "benchmark ./skills/my-skill/ -m haiku -m sonnet -o ./results": ("haiku", "sonnet"),
}
"""Command lines that run cases, and the models of their table."""

OTHERS = {
    "list": r"kernel-builder-cuda-kernels",
    "list -d ./my-skills/": r"my-skill",
    "list -v": r"skill_meta\.json",
    "runs": r"lift \(change\).* baseline .* with skill .*\(\+\d+%\)",
    "runs --skill git-commit-messages": r"skill: git-commit-messages .*100%",
    "runs -s my-skill -m haiku -m sonnet": r"haiku .* with skill .* sonnet",
    "runs --metric tokens": r"with skill",
    "runs --csv ./results.csv": r"written: results\.csv",
    "runs -d ./my-runs/": r"with skill",
}
"""The other command lines, and what they print."""

SKILLS = ("my-skill", "git-commit-messages", "api-errors", "kernel-builder-cuda-kernels")


def _enough(write: Callable[[int], dict[str, Any]]) -> list[dict[str, Any]]:
    """Write as many cases as a look needs, and four train cases."""
    parts = split_cases(Case(id=str(bay), input=write(bay)["input"], checks=()) for bay in BAYS)
    return [write(int(each.id)) for each in (*parts[False][:4], *parts[True][:8])]


CASES = _enough(case)
PROPOSALS = _enough(partial(proposed, quote=""))


class _Keyboard(io.StringIO):
    """A person at a terminal who says yes to everything."""

    def isatty(self) -> bool:
        return True


def _skill(name: str, bays: Iterable[int]) -> str:
    return HEAD.replace("name: codes", f"name: {name}") + "".join(map(line, bays))


def _write_cases(name: str, cases: list[dict[str, Any]]) -> None:
    Path("skills", name, "skill_meta.json").write_text(json.dumps({"cases": cases}), "utf-8")


class Server:
    """A teacher that knows everything, and students that know what is in their context."""

    def __init__(self, loopback: Loopback) -> None:
        self.loopback = loopback
        self._drafts = 0
        loopback.answer = self._answer

    def _answer(self, received: Received) -> str:
        asked = received.user
        if asked.startswith("You will write"):
            return json.dumps({"questions": ["Which bays?"]})
        if asked.startswith("You write an agent skill"):
            self._drafts += 1
            asked_for = re.search(r"Its name is (\S+)\.", asked)
            name = asked_for[1] if asked_for else f"skill-{self._drafts}"
            return f"````markdown\n{_skill(name, BAYS)}````"
        if asked.startswith("You write test cases"):
            return json.dumps({"proposals": [] if "these already" in asked else PROPOSALS})
        if asked.startswith("You write requests"):
            return json.dumps({"queries": []})
        if asked.startswith("You improve"):
            return adding("".join(line(bay) for bay in BAYS if line(bay) not in asked))
        match = re.search(r"bay (\d+)", asked)
        assert match is not None
        # Only the teacher is given files with a question.
        knows = code(int(match[1])) in received.system or "\n" in asked
        return f"It is {code(int(match[1]))}." if knows else "No idea."


@pytest.fixture
def terminal(
    pytester: pytest.Pytester, without_sockets: Loopback, monkeypatch: pytest.MonkeyPatch
) -> Loopback:
    """A project with the skills and traces of the published texts, and a person at a terminal."""
    for name in SKILLS:
        text = _skill(name, BAYS if name == "git-commit-messages" else BAYS[::2])
        pytester.makefile(".md", **{f"skills/{name}/SKILL": text})
        _write_cases(name, CASES)
    for name in ("trace.md", "agent-trace.md"):
        Path(name).write_text(facts(BAYS), "utf-8")
    said = {"type": "user", "message": {"content": facts(BAYS)}}
    Path("trace.json").write_text(json.dumps(said), "utf-8")
    Path("tests.json").write_text(json.dumps(CASES[:1]), "utf-8")
    pytester.makefile(
        ".toml",
        pytest=f'[pytest]\nupskill_aliases = ["kimi = openai:kimi@{without_sockets.openai_url}"]\n',
    )
    monkeypatch.setenv("ANTHROPIC_BASE_URL", without_sockets.url)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none-of-anybody")
    monkeypatch.setenv("GENERIC_BASE_URL", without_sockets.openai_url)
    monkeypatch.setattr(sys, "stdin", _Keyboard("y\n" * 99))
    Server(without_sockets)
    return without_sockets


def test_every_published_command_line_ends_as_published(
    terminal: Loopback,
    run_once: Run,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda _, command: started.append(command))
    # A student that always knows what it is told needs no more; each line may run all cases.
    monkeypatch.setattr("pytest_upskill.commands.teacher.RUNS", 2)

    def type_in(typed: str) -> str:
        with monkeypatch.context() as screen:
            screen.setattr(sys.stderr, "isatty", lambda: True)
            code = main(shlex.split(typed.replace(LOCAL, terminal.openai_url)))
        out, err = capsys.readouterr()
        said = " ".join(f"{out}{err}".split())
        assert not code, f"{typed}\n{out}{err}"
        return said

    # Of lines that differ only in what they ask for, the last.
    forms = {re.sub(r'^generate "[^"]+"', "generate", typed): typed for typed in GENERATIONS}
    for typed in forms.values():
        said = type_in(typed)
        end = GENERATIONS[typed]
        assert re.search(end, said), f"{typed}\n{said}"
        # Every look reads all recordings, which takes longer and longer.
        shutil.rmtree(".upskill/cache")

    for name in SKILLS:
        _write_cases(name, CASES[:3])
    for typed, models in EVALUATIONS.items():
        assert type_in(typed).startswith("$ pytest ")
        result = run_once(*started.pop()[4:])
        table = result.stdout.str()
        assert not result.ret, f"{typed}\n{table}"
        assert all(
            re.search(rf"^ *{re.escape(model)}( |$)", table, re.MULTILINE) for model in models
        )
        capsys.readouterr()

    shutil.copytree(".upskill/runs", "my-runs")
    shutil.copytree("skills", "my-skills")
    for typed, printed in OTHERS.items():
        said = type_in(typed)
        assert re.search(printed, said), f"{typed}\n{said}"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["skills/my-skill", "-t", "no.json"], "no file no.json in */*: name a file with cases"),
        (["skills", "-t", "tests.json"], "no file SKILL.md in */skills: name a folder with one"),
        (["skills/my-skill", "skills/other", "-t", "tests.json"], "takes one skill at a time: *"),
    ],
)
@pytest.mark.usefixtures("terminal")
def test_a_case_file_without_its_skill_is_refused(
    arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["eval", *arguments]) == 4
    said = capsys.readouterr().err.splitlines()
    pytest.LineMatcher(said).fnmatch_lines([f"ERROR: --tests: {problem}"])
