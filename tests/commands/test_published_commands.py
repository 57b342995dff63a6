"""Every command line of upskill's published texts, with pytest-upskill in place of upskill.

They are those of its README and of its announcement.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.commands.eval import pytest_arguments
from pytest_upskill.commands.main import main, parse
from pytest_upskill.models.grammar import parse_models
from tests.conftest import Run

GLM = "unsloth/GLM-4.7-Flash-GGUF:Q4_0"
LOG = "--upskill-log-runs"
LOCAL = "http://localhost:8080/v1"

RUNS = {
    "eval ./skills/my-skill/ --no-log-runs": "-o upskill_runs_dir= ./skills/my-skill/",
    "benchmark ./skills/my-skill/ -m gpt-4o -o /results": (
        "--upskill-models gpt-4o --upskill-runs 3 -o upskill_runs_dir=/results ./skills/my-skill/"
    ),
    "eval ./skills/my-skill/": "./skills/my-skill/",
    "eval ./skills/my-skill/ -v": "-v ./skills/my-skill/",
    "eval ./skills/my-skill/ -m haiku": "--upskill-models haiku ./skills/my-skill/",
    "eval ./skills/kernel-builder-cuda-kernels/ --model haiku --model kimi --runs 5": (
        "--upskill-models haiku,kimi --upskill-runs 5 ./skills/kernel-builder-cuda-kernels/"
    ),
    "eval ./skills/my-skill/ --model haiku --model sonnet": (
        "--upskill-models haiku,sonnet ./skills/my-skill/"
    ),
    "eval ./skills/git-commit-messages/ -m haiku -m sonnet": (
        "--upskill-models haiku,sonnet ./skills/git-commit-messages/"
    ),
    "eval ./skills/kernel-builder-cuda-kernels/ --model haiku --m kimi --runs 5": (
        "--upskill-models haiku,kimi --upskill-runs 5 ./skills/kernel-builder-cuda-kernels/"
    ),
    "eval ./skills/my-skill/ -m haiku -m sonnet --runs 5": (
        "--upskill-models haiku,sonnet --upskill-runs 5 ./skills/my-skill/"
    ),
    "eval ./skills/my-skill/ -m haiku --runs 5": (
        "--upskill-models haiku --upskill-runs 5 ./skills/my-skill/"
    ),
    "eval ./skills/kernel-builder/ --model haiku --model sonnet --runs 5": (
        "--upskill-models haiku,sonnet --upskill-runs 5 ./skills/kernel-builder/"
    ),
    f'eval ./skills/my-skill/ --model "{GLM}" --base-url {LOCAL}': (
        f"--upskill-models {GLM} --upskill-base-url {LOCAL} ./skills/my-skill/"
    ),
    "eval ./skills/my-skill/ -m generic.my-model --base-url http://localhost:8080/v1": (
        f"--upskill-models generic.my-model --upskill-base-url {LOCAL} ./skills/my-skill/"
    ),
    "eval ./skills/my-skill/ --no-baseline": "-m \"upskill(arm='with_skill')\" ./skills/my-skill/",
    "benchmark ./skills/my-skill/ -m gpt-4o -m claude-sonnet": (
        "--upskill-models gpt-4o,claude-sonnet --upskill-runs 3 ./skills/my-skill/"
    ),
    "benchmark ./skills/my-skill/ -m gpt-4o -m claude-sonnet --runs 5": (
        "--upskill-models gpt-4o,claude-sonnet --upskill-runs 5 ./skills/my-skill/"
    ),
}
"""Command lines that run cases, and the arguments of pytest, besides ``LOG``, that they mean."""


@pytest.mark.parametrize("line", RUNS)
def test_a_published_command_is_the_equivalent_pytest_command(line: str) -> None:
    options = parse(shlex.split(line))

    assert [each for each in pytest_arguments(options) if each != LOG] == shlex.split(RUNS[line])
    assert parse_models(options.models, default_base_url=options.base_url) or not options.models


GENERATIONS: dict[str, dict[str, Any]] = {
    'generate "write nvidia kernels" --from ./trace.md': {"sources": [Path("trace.md")]},
    'generate "write kernels" --from agent-trace.md': {"sources": [Path("agent-trace.md")]},
    'generate "build optimized CUDA kernels for PyTorch"': {},
    'generate "document the pattern" --from ./trace.json': {"sources": [Path("trace.json")]},
    'generate "build optimized CUDA kernels for PyTorch using HuggingFace kernel-builder"': {},
    'generate "add more error handling" --from ./skills/kernel-builder-cuda-kernels/': {
        "sources": [Path("skills/kernel-builder-cuda-kernels")]
    },
    f'generate "parse YAML" --model opus --eval-model "{GLM}" --eval-base-url {LOCAL}': {
        "model": "opus",
        "eval_model": [GLM],
        "eval_base_url": LOCAL,
    },
    'generate "write git commits" -m sonnet --eval-model haiku': {
        "model": "sonnet",
        "eval_model": ["haiku"],
    },
    'generate "write git commits" --m kimi -o ./skills/commits': {
        "model": "kimi",
        "output": Path("skills/commits"),
    },
    'generate "parse YAML" --no-eval': {"no_eval": True},
    'generate "parse YAML" -e "a: 1 -> {a: 1}" -e "b: -> {b: null}"': {
        "example": ["a: 1 -> {a: 1}", "b: -> {b: null}"]
    },
}
"""Command lines that write a skill, and the options that they set."""


@pytest.mark.parametrize("line", GENERATIONS)
def test_a_published_generation_is_understood(line: str) -> None:
    name, task, *arguments = shlex.split(line)

    options = vars(parse([name, task, *arguments]))

    default = vars(parse([name, task]))
    assert {key for key in options if options[key] != default[key]} <= GENERATIONS[line].keys()
    assert {key: options[key] for key in GENERATIONS[line]} == GENERATIONS[line]
    chosen = [options["model"], *(options["eval_model"] or ())]
    assert parse_models(chosen, default_base_url=options["eval_base_url"])


@pytest.mark.parametrize(
    "line",
    [
        "runs",
        "runs --skill git-commit-messages",
        "runs -s my-skill -m haiku -m sonnet",
        "runs --metric tokens",
        "runs --csv ./results.csv",
        "runs -d ./my-runs/",
        "list",
        "list -d ./my-skills/",
        "list -v",
    ],
)
def test_every_other_published_command_is_understood(line: str) -> None:
    assert parse(shlex.split(line)).passed_on == []


@pytest.fixture
def skills(pytester: pytest.Pytester) -> Path:
    """Two skills, and next to their folder a file with a case of one of them."""
    for name in ("my-skill", "other"):
        text = f"---\nname: {name}\ndescription: Facts for a test.\n---\n# {name}\n"
        pytester.makefile(".md", **{f"skills/{name}/SKILL": text})
    tests = [{"input": "What is this?", "expected": {"contains": ["my-skill"]}}]
    Path("tests.json").write_text(json.dumps(tests), "utf-8")
    return pytester.path


def test_the_case_file_of_a_published_command_is_run_for_its_skill(
    skills: Path, run_once: Run
) -> None:
    line = ["./skills/my-skill/", "--tests", "./tests.json", "-m", "offline"]

    arguments = pytest_arguments(parse(["eval", *line]))

    owner = f"upskill_case_files={skills}/tests.json={skills}/skills/my-skill"
    assert arguments == [*("--upskill-models", "offline", LOG, "-o", owner, "./tests.json")]
    run_once(*arguments).stdout.fnmatch_lines(["my-skill", "*offline *"])


@pytest.mark.usefixtures("skills")
@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["skills/my-skill", "-t", "no.json"], "no file no.json in */*: name a file with cases"),
        (["skills", "-t", "tests.json"], "no file SKILL.md in */skills: name a folder with one"),
        (
            ["skills/my-skill", "skills/other", "-t", "tests.json"],
            "takes one skill at a time: *",
        ),
    ],
)
def test_a_case_file_without_its_skill_is_refused(
    arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["eval", *arguments]) == 4
    said = capsys.readouterr().err.splitlines()
    pytest.LineMatcher(said).fnmatch_lines([f"ERROR: --tests: {problem}"])
