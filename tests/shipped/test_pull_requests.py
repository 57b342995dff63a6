"""Seven kinds of pull request, through the workflows that the project shows, step by step."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.git_repository import commit_all, git
from tests.loopback import Loopback, Received
from tests.pages import CHECKOUT, fences
from tests.shipped.workflows import FOLDER, shell, steps

pytestmark = [pytest.mark.slow, pytest.mark.needs("git")]

Change = Callable[[Path], None]

FACTS = {"limit": "The limit is 37 attempts.", "owner": "Its owner is the lighthouse team."}
RECORD = (
    "python -P -m pytest skills --upskill-models haiku --upskill-runs 5"
    " --upskill-cache-dir recordings"
)


def write_skill(project: Path, name: str, *facts: str, cases: bool = True) -> None:
    folder = project / "skills" / name
    folder.mkdir(parents=True, exist_ok=True)
    head = f"---\nname: {name}\ndescription: Facts of {name}. Use when asked about it.\n---\n"
    text = "\n".join(FACTS[fact] for fact in facts)
    (folder / "SKILL.md").write_text(f"{head}\n# {name}\n\n{text}\n", "utf-8")
    entries = [
        {"id": fact, "input": f"{name}: {fact}?", "expected": {"contains": FACTS[fact][-12:]}}
        | {"min_pass_rate": 0}
        for fact in FACTS
    ]
    if cases:
        (folder / "skill_meta.json").write_text(json.dumps({"cases": entries}), "utf-8")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The URL of a host, one for all tests: recordings are those of a URL."""
    loopback = Loopback()

    def recite(received: Received) -> str:
        fact = received.user.partition(": ")[2].removesuffix("?")
        known = FACTS[fact] if FACTS[fact] in received.system else "I do not know."
        return f"{known} ({len(loopback.requests)})"

    loopback.answer = recite
    yield loopback.url
    loopback.close()


@pytest.fixture
def project(tmp_path: Path, server: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with two skills, and a branch for a pull request."""
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server)
    (tmp_path / ".gitignore").write_text(".upskill/\n*.html\n*.md.new\n__pycache__/\n", "utf-8")
    (tmp_path / "pyproject.toml").write_text("[tool.pytest]\n", "utf-8")
    write_skill(tmp_path, "billing", *FACTS)
    write_skill(tmp_path, "ledger", "limit")
    commit_all(tmp_path, "main")
    git(tmp_path, "update-ref", "refs/remotes/origin/main", "HEAD")
    git(tmp_path, "switch", "--quiet", "--create", "branch")
    return tmp_path


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recordings of each state of the repository, by its name."""
    return tmp_path_factory.mktemp("kept")


def record(project: Path, kept: Path, state: str) -> None:
    """Record what a replay needs, as somebody with a key does; once for each state."""
    recordings = project / "recordings"
    if not (kept / state).exists():
        process = shell(RECORD, project, ANTHROPIC_API_KEY="key")
        assert process.returncode in {0, 1}, process.stdout
        shutil.copytree(recordings, kept / state)
    shutil.copytree(kept / state, recordings, dirs_exist_ok=True)


def words(project: Path) -> None:
    (project / "skills" / "README.md").write_text("Words.\n", "utf-8")


def better(project: Path) -> None:
    write_skill(project, "ledger", *FACTS)


def worse(project: Path) -> None:
    write_skill(project, "billing", "owner")


def new(project: Path) -> None:
    write_skill(project, "archive", *FACTS)


def untested(project: Path) -> None:
    write_skill(project, "archive", *FACTS, cases=False)


def deleted(project: Path) -> None:
    shutil.rmtree(project / "skills" / "ledger")


def unreadable(project: Path) -> None:
    (project / "skills" / "ledger" / "skill_meta.json").write_text('{"cases": [', "utf-8")


KINDS: list[Change] = [words, better, worse, new, untested, deleted, unreadable]
GREEN: set[Change] = {words, better, new, untested, deleted}
SAID: dict[Change, str] = {
    worse: "billing on haiku: the skill became worse than origin/main: limit",
    untested: "archive",
    deleted: "ledger",
    unreadable: "skills/ledger/skill_meta.json:1",
}
MEASURED: list[Change] = [better, worse, new]


@dataclass(frozen=True)
class Workflow:
    """The scripts of a workflow that test skills, and whether they replay recordings."""

    scripts: tuple[str, ...]
    replays: bool


def _workflow(scripts: Iterator[str]) -> Workflow:
    testing = tuple(script for script in scripts if " -m pytest" in script)
    assert testing
    return Workflow(testing, "--upskill-cache replay" in testing[0])


def _readme() -> Iterator[str]:
    page = CHECKOUT / "README.md"
    text = next(fence.text for fence in fences(page) if "\njobs:\n" in fence.text)
    return (step["run"] for step in steps(yaml.safe_load(text)) if "run" in step)


def _github(name: str) -> Iterator[str]:
    workflow = yaml.safe_load((FOLDER / name).read_text("utf-8"))
    return (step["run"] for step in steps(workflow) if "run" in step)


def _gitlab() -> Iterator[str]:
    return iter(yaml.safe_load((FOLDER / "gitlab-ci.yml").read_text("utf-8"))["skills"]["script"])


def _jenkins() -> Iterator[str]:
    text = (FOLDER / "Jenkinsfile").read_text("utf-8")
    for long, short in re.findall(r"sh (?:'''(.*?)'''|'(.*?)')", text, re.DOTALL):
        yield long or short


WORKFLOWS = {
    "README": _workflow(_readme()),
    "live": _workflow(_github("live.yml")),
    "replay": _workflow(_github("replay.yml")),
    "GitLab": _workflow(_gitlab()),
    "Jenkins": _workflow(_jenkins()),
}


def run(workflow: Workflow, project: Path) -> tuple[int, str]:
    """Run the steps of a job, up to the first that fails."""
    given = {"BASE": "main", "CHANGE_TARGET": "main"}
    given |= {} if workflow.replays else {"ANTHROPIC_API_KEY": "key"}
    said = ""
    for script in workflow.scripts:
        # One model does, of those that a workflow names.
        process = shell(script.replace("haiku,sonnet", "haiku"), project, **given)
        said += process.stdout
        if process.returncode:
            return process.returncode, said
    return 0, said


# The commands of the others differ from these in words, so one that is red and one that is green
# show that they are right.
EVERY_KIND = {"live", "replay"}


@pytest.mark.parametrize(
    ("name", "change"),
    [
        pytest.param(name, change, id=f"{name}-{change.__name__}")
        for name in WORKFLOWS
        for change in (KINDS if name in EVERY_KIND else [worse, untested])
    ],
)
def test_a_pull_request_is_red_where_it_must_be_and_says_why(
    project: Path, kept: Path, name: str, change: Change
) -> None:
    if WORKFLOWS[name].replays:
        record(project, kept, "main")
    change(project)
    if WORKFLOWS[name].replays and change in MEASURED:
        record(project, kept, change.__name__)
    commit_all(project, "branch")

    code, said = run(WORKFLOWS[name], project)

    assert (code == 0) == (change in GREEN), said
    assert SAID.get(change, "") in said
    assert "Traceback" not in said


@pytest.mark.parametrize("change", [better, worse], ids=lambda change: change.__name__)
def test_a_change_from_a_fork_is_red_until_a_maintainer_records_its_answers(
    project: Path, kept: Path, change: Change
) -> None:
    record(project, kept, "main")
    change(project)
    commit_all(project, "branch")

    code, said = run(WORKFLOWS["replay"], project)

    assert code == 1
    command = "git fetch && git merge origin/main && pytest skills .*--upskill-cache auto"
    assert re.search(f"maintainer does\\): {command}", said), said

    record(project, kept, change.__name__)
    code, said = run(WORKFLOWS["replay"], project)

    assert (code == 0) == (change in GREEN), said
