"""What is installed, read and checked once for all runs of pytest of a process.

Each would read and parse the metadata of every distribution several times to find its plugins, and
look through everything in pytest's own plugins for hooks and fixtures.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, cached_property
from importlib import metadata as installed
from importlib.metadata import Distribution, PathDistribution
from operator import attrgetter
from types import ModuleType
from typing import Any

import pluggy
import pytest
from _pytest import fixtures


class _Installed(PathDistribution):
    entry_points = cached_property(attrgetter("_all.entry_points"))
    files = cached_property(attrgetter("_all.files"))
    metadata = cached_property(attrgetter("_all.metadata"))

    def __init__(self, found: Distribution) -> None:
        self._all = found
        super().__init__(found._path)  # type: ignore[attr-defined]  # it has no public name


def read_installed_once(patch: pytest.MonkeyPatch) -> None:
    """Make pytest and pluggy find the distributions that are installed now, and no others."""
    found = [_Installed(each) for each in installed.distributions()]

    def distributions(**_: Any) -> Iterator[Distribution]:
        return iter(found)

    patch.setattr(installed, "distributions", distributions)
    patch.setattr(installed, "version", cache(installed.version))
    # Looks at everything in all plugins for decorators in the wrong order, a tenth of a run's time.
    manager = fixtures.FixtureManager
    patch.setattr(manager, "_check_for_wrapped_fixture", lambda *_: None, raising=False)
    for module in (fixtures, pluggy._manager):
        patch.setattr(module, "dir", _names_in, raising=False)


def _names_in(plugin: object) -> list[str]:
    """Return what there may be of a plugin; of pytest's own, which never change, what there is."""
    is_pytests = isinstance(plugin, ModuleType) and plugin.__name__.startswith("_pytest.")
    return _hooks_and_fixtures(plugin) if is_pytests else dir(plugin)


@cache
def _hooks_and_fixtures(plugin: ModuleType) -> list[str]:
    kind = fixtures.FixtureFunctionDefinition
    return [
        name
        for name in dir(plugin)
        if name.startswith("pytest_") or isinstance(getattr(plugin, name), kind)
    ]


@pytest.fixture(scope="session", autouse=True)
def installed_once() -> Iterator[None]:
    """Read it once in the process that runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        read_installed_once(patch)
        yield
