"""Fixtures of the suite: pytest inside pytest, skills on disk, and no network but loopback."""

from __future__ import annotations

import gc
import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.models.hosts import HOSTS
from tests.canned_client import canned_client
from tests.compiling import programs
from tests.forked import forked_workers
from tests.git_repository import commit_all, git
from tests.imports import import_all
from tests.installed import installed_once
from tests.loopback import loopback, model, without_sockets
from tests.sandbox_programs import marker
from tests.scripted_model import script
from tests.teaching import depot

Run = Callable[..., pytest.RunResult]
WriteSkill = Callable[..., Path]

FACT = "The retry budget of the billing service is 37 attempts.\n"
QUESTION = "What is the retry budget of the billing service?"

OF_CI = ("GITHUB_", "CI_MERGE_REQUEST_", "CHANGE_TARGET")
"""How variables begin in which CI systems tell about a pull request."""

UNTESTED_PLUGINS = ("-p", "no:anyio", "-p", "no:hypothesispytest")
"""Leaves out plugins of anyio, which comes with the SDKs, and of hypothesis: slow, and not ours."""


def budget_cases(count: int) -> list[dict[str, Any]]:
    """Make cases that all ask for the fact of ``write_skill``, each in a message of its own."""
    return [
        {"id": f"case-{number}", "input": f"{QUESTION} ({number})", "expected": {"contains": "37"}}
        for number in range(count)
    ]


def recordings(folder: Path | None = None) -> list[Path]:
    """List what inner runs recorded in a folder, else in the working directory."""
    return sorted((folder or Path.cwd()).glob(".upskill/cache/*/*.json"))


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the developer's keys, and what CI and coverage set, from each test's environment.

    A process that a test starts takes a third longer when it is measured, and shows little: what it
    does, tests in this process do too.
    """
    monkeypatch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)
    keys = {key for host in HOSTS for key in host.keys}
    for name in list(os.environ):
        if name in keys or name.startswith(("ANTHROPIC_", "OPENAI_", "UPSKILL_", *OF_CI)):
            monkeypatch.delenv(name)
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    # No test uses TLS, and to read all certificates of the machine takes as long as a short run.
    monkeypatch.setenv("SSL_CERT_FILE", str(Path(__file__).with_name("certificate.pem")))


@pytest.fixture(autouse=True)
def _only_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse every connection that would leave this machine."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if self.family != socket.AF_UNIX and address[0] not in {"127.0.0.1", "::1", "localhost"}:
            raise AssertionError(f"a test tried to connect to {address}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)


@pytest.fixture(params=["no xdist", "-n2"])
def run(request: pytest.FixtureRequest, pytester: pytest.Pytester) -> Run:
    """Run pytest inside pytest: without pytest-xdist, and on two workers."""
    args = {"no xdist": ("-p", "no:xdist"), "-n2": ("-n2",)}[request.param]
    return _runner(pytester, args)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Start workers for one set of a test's parameters: two take longer than most other tests."""
    seen: set[str] = set()
    repeated = []
    for item in items:
        params = getattr(item, "callspec", None)
        if params is not None and params.params.get("run") == "-n2":
            name = item.nodeid.partition("[")[0]
            if name in seen:
                repeated.append(item)
            seen.add(name)
    if repeated:
        config.hook.pytest_deselected(items=repeated)
        items[:] = [item for item in items if item not in set(repeated)]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Import what inner runs do before the first: pytester drops what a run has imported.

    httpx2 imports httpcore2 at the first request, and knows the exceptions of the first import
    alone; extension modules such as PyYAML's do not survive a second import, and the SDKs' takes a
    second. The process that only distributes the tests needs none of them.
    """
    if session.items:
        import_all()
        # It stays to the end: to search it for garbage is a twentieth of the tests' time.
        gc.freeze()


@pytest.fixture
def run_once(pytester: pytest.Pytester) -> Run:
    """Run pytest inside pytest in one process, for what pytest-xdist cannot change."""
    return _runner(pytester, ("-p", "no:xdist"))


def _runner(pytester: pytest.Pytester, args: tuple[str, ...]) -> Run:
    def run(*more: str | os.PathLike[str], **settings: bool) -> pytest.RunResult:
        first = (*UNTESTED_PLUGINS, "-W", "error")
        return pytester.runpytest_inprocess(*first, *args, *more, **settings)

    return run


@pytest.fixture
def write_skill(pytester: pytest.Pytester) -> WriteSkill:
    """Write a skill folder: a SKILL.md with ``body`` and a case file with ``cases``."""

    def write(*cases: dict[str, Any], name: str = "billing", body: str = FACT, **top: Any) -> Path:
        folder = pytester.path / "skills" / name
        folder.mkdir(parents=True, exist_ok=True)
        about = f"Facts about {name} for a test. Use when a test asks."
        text = f"---\nname: {name}\ndescription: {about}\n---\n\n# {name}\n\n{body}"
        (folder / "SKILL.md").write_text(text, "utf-8")
        cases = cases or ({"id": "budget", "input": QUESTION, "expected": {"contains": "37"}},)
        (folder / "skill_meta.json").write_text(json.dumps({"cases": list(cases), **top}), "utf-8")
        return folder

    return write


@pytest.fixture
def repository(write_skill: WriteSkill, pytester: pytest.Pytester) -> Path:
    """Commit a skill on main, and go on on a branch."""
    write_skill()
    commit_all(pytester.path)
    git(pytester.path, "switch", "--quiet", "--create", "branch")
    return pytester.path


@pytest.fixture
def skill(write_skill: WriteSkill) -> Path:
    """Write a skill with one case, which a model passes that has read the skill."""
    return write_skill()
