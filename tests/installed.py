"""What is installed, read and checked once for all runs of pytest of a process.

Each would read and parse the metadata of every distribution several times to find its plugins.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from importlib import metadata as installed
from importlib.metadata import Distribution, PathDistribution
from operator import attrgetter
from typing import Any

import pytest
from _pytest.fixtures import FixtureManager


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
    # Looks at everything in all plugins for decorators in the wrong order, a tenth of a run's time.
    patch.setattr(FixtureManager, "_check_for_wrapped_fixture", lambda *_: None, raising=False)


@pytest.fixture(scope="session", autouse=True)
def installed_once() -> Iterator[None]:
    """Read it once in the process that runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        read_installed_once(patch)
        yield
