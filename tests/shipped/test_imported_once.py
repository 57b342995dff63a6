"""Runs of pytest in tests import nothing slow, which the next run would import anew."""

from __future__ import annotations

import sys

import pytest
from _pytest.pytester import SysModulesSnapshot

from tests.conftest import Run
from tests.loopback import Loopback


@pytest.mark.usefixtures("skill")
@pytest.mark.parametrize("model", ["m=small@{0.openai_url}", "m=anthropic:small@{0.url}"])
def test_a_run_in_a_test_imports_no_sdk_anew(
    run_once: Run, loopback: Loopback, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    before = set(sys.modules)
    imported: set[str] = set()
    restore = SysModulesSnapshot.restore

    def noted(self: SysModulesSnapshot) -> None:
        imported.update({name.partition(".")[0] for name in set(sys.modules) - before})
        restore(self)

    monkeypatch.setattr(SysModulesSnapshot, "restore", noted)

    result = run_once("--upskill-models", model.format(loopback), "skills")

    result.assert_outcomes(passed=2, failed=1)
    assert not imported & {"anthropic", "httpx2", "openai", "pydantic", "xdist"}
