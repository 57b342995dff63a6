"""A model whose every request fails is stopped and reported once."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_upskill.answers.recordings import Cache
from pytest_upskill.answers.retry import HostClient
from pytest_upskill.report.exit_code import NOT_MEASURED
from tests import junit
from tests.conftest import Run, WriteSkill, budget_cases
from tests.loopback import Loopback, Received, Reply, know


@pytest.fixture(autouse=True)
def _cases(write_skill: WriteSkill) -> None:
    write_skill(*budget_cases(20))


def test_an_error_of_every_request_stops_the_model_and_is_reported_once(
    run: Run, loopback: Loopback, model: str
) -> None:
    loopback.answer = lambda _: Reply(status=401, text="go away", delay=0.05)

    result = run(
        "--upskill-models", model, "--upskill-concurrency", "4", "--junitxml", "out.xml", "skills"
    )

    assert result.ret == NOT_MEASURED
    assert len(loopback.requests) <= 4
    # Once as an error, and in the line of the exit code.
    assert [
        line.partition("m: HTTP 401 go away")[0] for line in result.outlines if "go away" in line
    ] == ["", "exit code 75: 40 trials not measured: "]
    result.stdout.fnmatch_lines(["*= 1 skipped, 1 error, 39 more with the same cause in *"])
    cases = junit.cases_of(Path("out.xml"))
    trials = [case for name, case in cases.items() if not name.startswith("gate[")]
    assert len(trials) == 40
    assert all(case.find("error") is not None for case in trials)


def test_a_host_that_is_not_running_is_one_line_for_its_models_and_the_others_go_on(
    run_once: Run, model: str
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        host = f"127.0.0.1:{free.getsockname()[1]}"

    result = run_once(
        "--upskill-models", f"ollama:a@http://{host}/v1,b@http://{host}/v1,{model}", "skills"
    )

    assert sum(line.startswith(f"no connection to {host}") for line in result.outlines) == 1
    result.stdout.fnmatch_lines(
        [
            f"no connection to {host} (*): is it running and *? (after 3 attempts in ? s)",
            "*41 passed, 2 skipped, 1 error, 79 more with the same cause in *",
        ]
    )


def test_repeated_errors_fail_again_with_lf(run_once: Run, loopback: Loopback, model: str) -> None:
    args = ("--upskill-models", model, "skills")
    loopback.answer = lambda _: Reply(status=401, text="go away")
    run_once(*args)
    loopback.answer = lambda _: Reply(text="37")

    result = run_once(*args, "--lf")

    result.assert_outcomes(passed=41)


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (
            (HostClient, "__init__"),
            "cannot create a client for openai:small@*: TypeError: a bug*",
        ),
        (
            (Cache, "store"),
            "internal error of pytest-upskill, please report it: TypeError: a bug *(*.py:*)",
        ),
    ],
)
def test_an_unexpected_error_of_every_request_is_reported_once_without_a_traceback(
    run: Run, model: str, monkeypatch: pytest.MonkeyPatch, *, broken: tuple[type, str], said: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise TypeError("a bug\nin two lines")

    monkeypatch.setattr(*broken, fail)

    result = run("--upskill-models", model, "skills")

    assert result.ret == NOT_MEASURED
    result.stdout.fnmatch_lines([said, "*= 1 skipped, 1 error, 39 more with the same cause in *"])
    assert len(result.outlines) < 50


@pytest.mark.parametrize(("said", "errors"), [("{}", 3), ("the request has {} tokens", 1)])
def test_each_error_is_reported_once_whatever_its_numbers(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback, model: str, said: str, errors: int
) -> None:
    write_skill(*budget_cases(3))

    def refuse(received: Received) -> Reply:
        number = int(received.user.rpartition("(")[2][0])
        word = number if errors == 1 else "abc"[number]
        return Reply(status=400, text=said.format(word))

    loopback.answer = refuse

    result = run_once("--upskill-models", model, "skills")

    result.assert_outcomes(errors=errors, skipped=1)
    more = f"{6 - errors} more with the same cause in *"
    result.stdout.fnmatch_lines([f"*1 skipped, {errors} error*, {more}"])


def test_a_burst_of_refusals_loses_nothing_and_asks_nothing_twice(
    run_once: Run, loopback: Loopback, model: str
) -> None:
    answered: list[tuple[str, str]] = []

    def answer(received: Received) -> Reply:
        # The first 15 are too many at once, whoever they are.
        if len(loopback.requests) <= 15:
            return Reply(status=429, text="slow down", headers={"retry-after-ms": "100"})
        answered.append((received.system, received.user))
        return replace(know(received), delay=0.02)

    loopback.answer = answer

    result = run_once("--upskill-models", model, "skills")

    assert result.ret == pytest.ExitCode.OK
    result.assert_outcomes(passed=41)
    assert len(answered) == len(set(answered)) == 40
    assert len(loopback.requests) == 55
    result.stdout.re_match_lines(
        [r"requested 40 answers: cost n/a; \d+ requests? (was|were) retried"]
    )
