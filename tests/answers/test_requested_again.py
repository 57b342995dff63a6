"""A run that is missing is requested again once the others are done, before exit code 75."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_upskill.answers import retry
from tests.conftest import QUESTION, Run, WriteSkill

CLIENT = """
from pathlib import Path

from pytest_upskill.models import Completion, ProviderError

ASKED = []

class Flaky:
    async def complete(self, request):
        ASKED.append(request.user)
        Path("asked.txt").write_text("\\n".join(ASKED))
        if "odd" in request.user and ASKED.count(request.user) <= {failures}:
            raise ProviderError("m: no reply", retryable=True, status=200)
        return Completion(text="37", input_tokens=1, output_tokens=1)

    async def aclose(self):
        pass

def pytest_upskill_make_client(model, config):
    return Flaky()
"""


@pytest.mark.parametrize(("failures", "missing"), [(6, False), (99, True)])
def test_only_the_missing_runs_are_requested_again_after_all_others(
    run_once: Run,
    write_skill: WriteSkill,
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    failures: int,
    missing: bool,
) -> None:
    for seconds in ("_FIRST_BACKOFF_S", "_LONGEST_BACKOFF_S"):
        monkeypatch.setattr(retry, seconds, 0.001)
    pytester.makeconftest(CLIENT.replace("{failures}", str(failures)))
    write_skill(
        *(
            {"id": name, "input": f"{QUESTION} {name}", "expected": {"contains": "37"}}
            for name in ("one", "odd", "two", "three")
        )
    )

    result = run_once("--upskill-models=m=mine:m", "-m", "upskill(arm='with_skill')", "skills")

    asked = [line.rpartition(" ")[2] for line in Path("asked.txt").read_text().splitlines()]
    # Six attempts, then the other cases, then one more request of at most as many.
    assert asked.count("odd") == (12 if missing else 7)
    assert [asked.count(name) for name in ("one", "two", "three")] == [1, 1, 1]
    assert (result.ret == 75) is missing
