"""The architecture, as a map that every import is held against."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatchcase
from graphlib import TopologicalSorter
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

import pytest_upskill

ROOT = Path(pytest_upskill.__file__).parent

# A module stands where its own name does, else where a pattern fits; it imports what stands in the
# same row or below.
MAP = {
    # 4: what pytest loads in every run, and what the command line does without pytest
    "entry points": "plugin hookspecs __main__",
    # 3: know pytest, or what a run has come to
    "a run": "run",
    "hooks of a run": (
        "xdist caseless changed_since outgoing shard prune passed_over report.allure report.files "
        "report.junit report.live_line report.progress report.repeats report.spending "
        "report.tb_line report.terminal worker_output"
    ),
    "items and their results": "items ledger lint_items grouped_warnings",
    "asking for a run": "extending fetching",
    "reports": "report report.*",
    "decisions": "gate baseline_update",
    # 2: one frozen value
    "settings": "settings options",
    # 1: do I/O, know nothing of pytest
    "answers": (
        "answers asking activity compiling daemon fetch first_calls forecast handover inquiries "
        "judging "
        "paying retry turns"
    ),
    "the outer world": (
        "providers providers.* cache budget prices compile compile.* sandbox confinement launcher "
        "landlock privileges seccomp syscalls workspace "
        "formats formats.* git history changed_recordings project"
    ),
    # 0: pure
    "words": "report.text",
    "figures": "cells comparison baseline baseline_folder rounds stats stats.* thresholds",
    "trials": "plan grade results completion reasoning models",
    "skills": "skill statements extensions lint",
    "checks": "checks checks.* blocks languages paths compile_options sandbox_levels cores "
    "cpu_limit as_written longlived redaction safe_text whole_file",
}
KNOW_PYTEST = {
    "entry points",
    "a run",
    "hooks of a run",
    "items and their results",
    "asking for a run",
    "settings",
}
HOMES = {
    "_pytest": {"report.junit"},
    "anthropic": {"providers.anthropic"},
    "openai": {"providers.openai"},
    "httpx2": {
        "providers.anthropic",
        "providers.connections",
        "providers.openai",
        "providers.served",
        "providers.wire",
    },
    "genai_prices": {"prices"},
}
"""What is not public, or slow to import, and the only modules that may."""


def _name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


OWN = {_name(path).partition(".")[0] for path in ROOT.rglob("*.py")}
"""What `imported` names without the package's name."""

MODULES = {
    _name(path): path
    for path in ROOT.rglob("*.py")
    if path.parent != ROOT or path.stem != "__init__"
}


def row(module: str) -> str:
    """Return the name of the row that a module stands in."""
    named = [name for name, words in MAP.items() if module in words.split()]
    fitting = [
        name
        for name, words in MAP.items()
        if any(fnmatchcase(module, pattern) for pattern in words.split())
    ]
    found = named or fitting
    assert len(found) == 1, f"{module}.py has {len(found)} places in MAP: give it one"
    return found[0]


def imported(module: str) -> Iterator[str]:
    """Name what a module imports anywhere in it; a name of our own without the package's."""
    for node in ast.walk(ast.parse(MODULES[module].read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                full = f"{node.module}.{alias.name}".removeprefix("pytest_upskill.")
                yield full if full in MODULES else node.module.removeprefix("pytest_upskill.")


def test_imports_lead_downward() -> None:
    depths = {name: depth for depth, name in enumerate(MAP)}

    upward = [
        f"{module} ({row(module)}) imports {other} ({row(other)})"
        for module in sorted(MODULES)
        for other in imported(module)
        if other in MODULES and depths[row(other)] < depths[row(module)]
    ]

    assert upward == []


def test_imports_lead_in_no_circle() -> None:
    graph = {module: set(imported(module)) & MODULES.keys() - {module} for module in MODULES}

    order = list(TopologicalSorter(graph).static_order())

    assert set(order) == set(MODULES)


def test_the_map_names_nothing_that_is_gone() -> None:
    names = [word for words in MAP.values() for word in words.split() if "*" not in word]

    assert set(names) <= set(MODULES)
    assert len(names) == len(set(names))


def test_below_the_settings_nothing_knows_pytest() -> None:
    # The source of a program of its own, which nothing imports.
    modules = set(MODULES) - {"compile.run_tests"}
    knowing = {module for module in modules if {"pytest", "pluggy"} & _roots(module)}

    assert {row(module) for module in knowing} == KNOW_PYTEST


@pytest.mark.parametrize("package", HOMES)
def test_a_foreign_package_is_imported_where_it_is_at_home(package: str) -> None:
    importing = {module for module in MODULES if package in _roots(module)}

    assert importing == HOMES[package]


@pytest.mark.parametrize("extra", ["anthropic", "openai"])
def test_what_is_imported_is_declared(extra: str) -> None:
    project = tomllib.loads((ROOT.parent / "pyproject.toml").read_text("utf-8"))["project"]
    always = set(map(_distribution, project["dependencies"]))
    with_extra = always | set(map(_distribution, project["optional-dependencies"][extra]))
    of_sdk = set().union(*(HOMES[package] for package in HOMES if package != "_pytest"))
    of_other = {f"providers.{sdk}" for sdk in ("anthropic", "openai") if sdk != extra}
    distributions = packages_distributions()

    undeclared = {
        f"{module} imports {package}"
        for module in MODULES.keys() - of_other
        for package in _roots(module) - sys.stdlib_module_names - {"pytest_upskill"} - OWN
        if not {name.lower().replace("_", "-") for name in distributions[package]}
        & (with_extra if module in of_sdk else always)
    }

    assert undeclared == set()


def _distribution(requirement: str) -> str:
    """Read the name of ``jinja2>=3.1``."""
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0].lower()


def _roots(module: str) -> set[str]:
    return {name.partition(".")[0] for name in imported(module)}
