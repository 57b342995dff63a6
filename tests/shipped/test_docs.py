"""What README and docs show is what happens."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_upskill import hookspecs
from pytest_upskill.cases.load import load_skills
from pytest_upskill.cases.skill_meta.schema import CaseFile
from pytest_upskill.commands.main import COMMANDS
from pytest_upskill.figures.gate import FAIL_ON
from pytest_upskill.report.files.write import REPORTS
from tests.conftest import Run
from tests.git_repository import commit_all, git
from tests.pages import (
    CHECKOUT,
    PAGES,
    TUTORIAL,
    Command,
    Fence,
    check_shown,
    commands,
    fences,
    links,
    page_name,
)
from tests.shipped.workflows import shell

every_page = pytest.mark.parametrize("page", PAGES, ids=page_name)

EXAMPLES = CHECKOUT / "example_skills"
CASES_PAGE = CHECKOUT / "docs" / "writing-cases.md"
README = CHECKOUT / "README.md"
COMPILES = pytest.mark.needs("gcc", "g++", "nvcc")
ALL_GREEN = "pytest --upskill-models offline --upskill-require-compilers skills"
LANGUAGES = {"console", "json", "markdown", "python", "text", "toml", "yaml"}
FREE_MODELS = ("offline", "acme:")
INSTALLED = {
    *("-e .", "-e '.[dev]'", "-e '.[openai,anthropic,xdist]'", "pytest-upskill"),
    *(f"'pytest-upskill[{extra}]'" for extra in ("anthropic", "openai", "cuda", "xdist", "all")),
    *(f"'pytest-upskill[{cloud}]'" for cloud in ("azure", "bedrock", "vertex")),
}
NOT_HERE = {"export", "curl", "ollama", "llama-server", "vllm", "lms", "gh", "git"}
"""Keys, servers of models, and repositories, of which no test can have all."""
PROVEN_BY_CI = {"pytest", "./check", ".ci/run"}
IGNORED_KEYS = {"$schema", "metadata", "output_file", "tests", "validator", "validator_config"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project with a skill, as a reader of the pages has one."""
    shutil.copytree(EXAMPLES, tmp_path / "example_skills")
    shutil.copytree(EXAMPLES / "git-commit-messages", tmp_path / "skills" / "git-commit-messages")
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=COMPILES if page == README else ())
        for page in PAGES
        if page != TUTORIAL
    ],
    ids=page_name,
)
def test_what_a_page_shows_in_a_terminal_is_what_happens(page: Path, folder: Path) -> None:
    if any((fence.title or "").startswith("skills/") for fence in fences(page)):
        shutil.rmtree(folder / "skills")
    if any("origin/main" in fence.text for fence in fences(page) if fence.language == "console"):
        _commit_on_main(folder)

    for fence in fences(page):
        assert fence.language in LANGUAGES, f"line {fence.line}"
        if fence.title is not None:
            _write(folder, fence)
        if fence.language == "console":
            for command in commands(fence.text):
                _run(command, folder)


@pytest.mark.needs("git")
def test_the_readmes_workflow_runs_commands_that_work(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BASE", "main")
    _commit_on_main(folder)
    skill = folder / "skills" / "git-commit-messages" / "SKILL.md"
    skill.write_text(f"{skill.read_text('utf-8')}\nOne more line.\n", "utf-8")
    (workflow,) = (fence for fence in fences(README) if fence.language == "yaml")

    for line in _run_lines(yaml.safe_load(workflow.text)):
        _run(Command(text=line, shown=()), folder)


def _commit_on_main(folder: Path) -> None:
    commit_all(folder)
    git(folder, "update-ref", "refs/remotes/origin/main", "HEAD")


def test_no_other_page_shows_a_workflow() -> None:
    shown = [page for page in PAGES if any(each.language == "yaml" for each in fences(page))]

    assert shown == [README]


@every_page
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    for link in links(page):
        if not link.startswith("https://"):
            assert (page.parent / link.partition("#")[0]).exists(), link


def test_the_readme_shows_a_case_file_that_can_be_read(folder: Path) -> None:
    (value,) = _json_of(fences(README))
    case_file = folder / "skills" / "git-commit-messages" / "skill_meta.json"
    case_file.write_text(json.dumps(value), "utf-8")

    assert len(load_skills(case_file)[0].cases) == 1


@pytest.mark.slow
@COMPILES
def test_every_case_shown_is_green_with_its_skill(folder: Path) -> None:
    shown = fences(CASES_PAGE)
    (text,) = (fence for fence in shown if fence.language == "markdown")
    case_file = _write(folder, text).with_name("skill_meta.json")
    cases = []

    for value in _json_of(shown):
        if "cases" in value:
            case_file.write_text(json.dumps(value), "utf-8")
            _run(Command(text=ALL_GREEN, shown=()), folder)
        else:
            cases.append(value)
    case_file.write_text(json.dumps({"cases": cases}), "utf-8")

    assert load_skills(case_file)[0].warnings == ()
    _run(Command(text=ALL_GREEN, shown=()), folder)


def test_every_key_of_the_case_file_is_shown() -> None:
    schema = CaseFile.model_json_schema()
    known = {key for entry in (schema, *schema["$defs"].values()) for key in entry["properties"]}

    shown = {key for value in _json_of(fences(CASES_PAGE)) for key in _keys(value)}

    lacks = sorted(known - shown - IGNORED_KEYS)
    assert known - shown == IGNORED_KEYS, (
        f"{page_name(CASES_PAGE)}: add an example in JSON with {lacks}"
    )


def test_the_page_of_commands_names_every_command_and_every_report() -> None:
    page = (CHECKOUT / "docs" / "commands.md").read_text("utf-8")

    assert [name for name in COMMANDS if f"`{name}`" not in page] == [], "docs/commands.md"
    assert [name for name in REPORTS if f"`--{name}`" not in page] == [], "docs/commands.md"


def test_the_reference_names_every_option_ini_key_and_hook(run_once: Run) -> None:
    reference = (CHECKOUT / "docs" / "reference.md").read_text("utf-8")

    words = run_once("--help").stdout.str() + " ".join(vars(hookspecs))

    names = set(re.findall(r"--upskill-[a-z-]+|\b(?:pytest_)?upskill_[a-z_]+", words))
    assert {"--upskill-models", "upskill_models", "pytest_upskill_make_client"} <= names
    assert names == set(re.findall(r"`((?:--|pytest_)?upskill[-_][a-z_-]+)", reference))


def test_the_help_and_the_reference_name_all_that_can_fail_a_gate(run_once: Run) -> None:
    reference = (CHECKOUT / "docs" / "reference.md").read_text("utf-8")
    row = next(line for line in reference.splitlines() if "`--upskill-fail-on WORDS`" in line)
    without_breaks = "".join(run_once("--help").stdout.str().split())

    assert f"Failonanyof:{','.join(FAIL_ON)}" in without_breaks
    assert [word for word in FAIL_ON if f"`{word}`" not in row] == []


def _write(folder: Path, fence: Fence) -> Path:
    assert fence.title is not None
    path = folder / fence.title
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(fence.text, "utf-8")
    return path


def _run(command: Command, folder: Path) -> None:
    """Run what costs nothing; a model that needs a key or a server is asked in a dry run."""
    for part in re.split(r"\s+&&\s+", command.text):
        program, _, arguments = part.partition(" ")
        if program == "pip":
            assert re.sub(r"==[\d.]+", "", arguments.removeprefix("install ")).strip() in INSTALLED
        elif arguments.startswith("benchmarks/"):  # takes minutes: only that it can be started
            _shell(f"python {CHECKOUT / arguments.split()[0]} --help", (), folder)
        elif program not in NOT_HERE and part not in PROVEN_BY_CI:
            _shell(part, command.shown, folder)


def _shell(command: str, shown: tuple[str, ...], folder: Path) -> None:
    models = re.findall(r"--upskill-models[ =](\S+)", command)
    if not all(model.startswith(FREE_MODELS) for model in models):
        command += " --upskill-dry-run"
    process = shell(command, folder)
    check_shown(shown, process.stdout.splitlines(), process.returncode)


def _run_lines(workflow: Any) -> Iterator[str]:
    for job in workflow["jobs"].values():
        for step in job["steps"]:
            yield from step.get("run", "").splitlines()


def _json_of(shown: list[Fence]) -> list[Any]:
    found = (fence for fence in shown if fence.language == "json" and fence.title is None)
    return [json.loads(fence.text) for fence in found]


def _keys(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
    for inner in value.values() if isinstance(value, dict) else value:
        if isinstance(inner, dict | list):
            yield from _keys(inner)
