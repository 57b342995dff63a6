"""The layers of the package, and that every import keeps to them."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

import pytest_upskill

ROOT = Path(pytest_upskill.__file__).parent

# From the top down. A folder or module at the top of the package imports from lower layers only.
LAYERS = (
    "plugin __main__",
    "commands",
    "session",
    "teacher agents",
    "report answers",
    "figures grading",
    "trials hookspecs",
    "cases models",
    "checks",
    "sandbox stats project",
)
MOST_ROOMS = 18
MOST_LAYERS = 10
DEPTHS = {room: depth for depth, layer in enumerate(LAYERS) for room in layer.split()}
KNOW_PYTEST = {"plugin", "hookspecs", "session"}
HOMES = {
    "_pytest": {"session.items", "session.report_files", "session.results"},
    "anthropic": {"models.anthropic"},
    "openai": {"models.openai"},
    "httpx2": {
        "agents.proxy",
        "agents.self_test",
        "agents.upstream",
        "models.call",
        "models.served_models",
    },
    "h11": {"agents.proxy"},
    "genai_prices": {"answers.prices"},
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


def room(module: str) -> str:
    return module.partition(".")[0]


@cache
def imported(module: str) -> frozenset[str]:
    """Name what a module imports anywhere in it; a name of our own without the package's."""
    return frozenset(_imported(module))


def _imported(module: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(MODULES[module].read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                full = f"{node.module}.{alias.name}".removeprefix("pytest_upskill.")
                yield full if full in MODULES else node.module.removeprefix("pytest_upskill.")


def test_every_room_has_a_layer() -> None:
    assert {room(module) for module in MODULES} == DEPTHS.keys()


def test_the_map_can_be_kept_in_mind() -> None:
    assert len(DEPTHS) <= MOST_ROOMS
    assert len(LAYERS) <= MOST_LAYERS


def test_imports_lead_to_lower_layers() -> None:
    upward = [
        f"{module} imports {other}"
        for module in sorted(MODULES)
        for other in imported(module)
        if other in MODULES
        and room(other) != room(module)
        and DEPTHS[room(other)] <= DEPTHS[room(module)]
    ]

    assert upward == []


def test_imports_lead_in_no_circle() -> None:
    graph = {module: set(imported(module)) & MODULES.keys() - {module} for module in MODULES}

    order = list(TopologicalSorter(graph).static_order())

    assert set(order) == set(MODULES)


def test_folders_inside_a_room_lead_in_no_circle() -> None:
    graph = {_shelf(module): set[str]() for module in MODULES}
    for module in MODULES:
        graph[_shelf(module)] |= {_shelf(other) for other in imported(module) if other in MODULES}

    order = list(TopologicalSorter({each: graph[each] - {each} for each in graph}).static_order())

    assert set(order) == set(graph)


def _shelf(module: str) -> str:
    """Return the module's folder inside its room, or the module if it lies in none."""
    return ".".join(module.split(".")[:2])


def test_only_the_top_layers_know_pytest() -> None:
    # The source of a program of its own, which nothing imports.
    modules = set(MODULES) - {"checks.compile.run_tests"}
    knowing = {module for module in modules if {"pytest", "pluggy"} & _roots(module)}

    assert {room(module) for module in knowing} == KNOW_PYTEST


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
    of_other = {f"models.{sdk}" for sdk in ("anthropic", "openai") if sdk != extra}
    distributions = packages_distributions()

    undeclared = {
        f"{module} imports {package}"
        for module in MODULES.keys() - of_other
        # The extra of a cloud is not installed everywhere.
        for package in _roots(module) - sys.stdlib_module_names - {"pytest_upskill", "azure"} - OWN
        if not {name.lower().replace("_", "-") for name in distributions[package]}
        & (with_extra if module in of_sdk else always)
    }

    assert undeclared == set()


def _distribution(requirement: str) -> str:
    """Read the name of ``jinja2>=3.1``."""
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0].lower()


def _roots(module: str) -> set[str]:
    return {name.partition(".")[0] for name in imported(module)}
