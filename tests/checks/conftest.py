"""The compilers of this machine, found once for the tests of a file."""

from __future__ import annotations

import pytest

from pytest_upskill.checks.compile import Compilers


@pytest.fixture(scope="module")
def compilers() -> Compilers:
    return Compilers()
