"""The same URL and name may stand for another model than the one that was recorded."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_upskill.models.keys import endpoints
from pytest_upskill.models.served_models import served_models
from tests.conftest import Run, WriteSkill
from tests.loopback import Loopback
from tests.sdk_requests import model_at

OLD = "'old.gguf', n_params 134515008, size 91726080"
LLAMA = {"id": "old.gguf", "created": 1, "meta": {"n_params": 134_515_008, "size": 91_726_080}}


def listed(*models: dict[str, Any]) -> dict[str, Any]:
    return {"object": "list", "data": list(models)}


@pytest.mark.parametrize(
    ("now", "name"),
    [
        ({**LLAMA, "id": "new.gguf"}, "'new.gguf', n_params 134515008, size 91726080"),
        ({**LLAMA, "meta": {"n_params": 7}}, "'old.gguf', n_params 7"),
    ],
)
def test_recordings_of_another_model_are_reported_in_one_line(
    run_once: Run,
    write_skill: WriteSkill,
    loopback: Loopback,
    model: str,
    *,
    now: dict[str, Any],
    name: str,
) -> None:
    write_skill()
    loopback.models = listed(LLAMA)
    run_once("--upskill-models", model, "skills")
    loopback.models = listed(now)

    result = run_once("--upskill-models", model, "skills")

    (line,) = (line for line in result.outlines if line.startswith("cache: "))
    assert line == (
        f"cache: {loopback.openai_url} serves {name} as 'small' now, but 2 of the replayed answers "
        f"are from {OLD}: add --upskill-cache refresh to request them again"
    )

    run_once("--upskill-models", model, "--upskill-cache=refresh", "skills")
    for models in (listed(now), None):
        loopback.models = models
        result = run_once("--upskill-models", model, "skills")
        result.stdout.no_fnmatch_line("cache: *")


@pytest.mark.parametrize(
    ("now", "described"),
    [
        (listed(LLAMA), OLD),
        (listed({**LLAMA, "created": 2}), OLD),
        (listed(LLAMA, {"id": "another"}), ""),
        (listed(), ""),
        ({"detail": "no such path"}, ""),
        ({"data": ["a", None, {"id": 7}]}, ""),
        (None, ""),
    ],
)
def test_a_model_is_described_by_what_lasts_if_the_list_tells_it(
    loopback: Loopback, now: dict[str, Any] | None, described: str
) -> None:
    loopback.models = now
    (endpoint,) = endpoints([model_at(loopback, "openai")], {}).values()

    found = served_models(endpoint, ["small"])

    assert found == ({"small": described} if described else {})


@pytest.mark.parametrize("mode", ["replay", "off"])
def test_a_run_that_does_not_need_the_list_does_not_request_it(
    run: Run, write_skill: WriteSkill, loopback: Loopback, model: str, mode: str
) -> None:
    write_skill()
    run("--upskill-models", model, "skills")
    assert loopback.model_list_requests == 1

    run("--upskill-models", model, f"--upskill-cache={mode}", "skills")

    assert loopback.model_list_requests == 1
