"""``--upskill-batch``: requests together at half the price, collected later if they are left."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.answers import batches
from pytest_upskill.report.exit_code import NOT_MEASURED
from tests.answers.batch_server import BatchServer, serve
from tests.conftest import Run, WriteSkill, budget_cases

pytestmark = pytest.mark.slow

PRICES = "upskill_prices =\n    a = 1/2\n    o = 1/2\n    j = 1/2\n"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, pytester: pytest.Pytester) -> Iterator[BatchServer]:
    """The vendors' hosts, where a model knows what is in its context."""
    monkeypatch.setattr(batches, "_QUIET_S", 0.1)
    monkeypatch.setattr(batches, "_FIRST_POLL_S", 0.05)
    monkeypatch.setattr(batches, "_LONGEST_POLL_S", 0.1)
    for server in serve():
        for name in ("ANTHROPIC", "OPENAI"):
            monkeypatch.setenv(f"{name}_API_KEY", "key-of-a-vendor")
            monkeypatch.setenv(f"{name}_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        pytester.makeini(f"[pytest]\n{PRICES}")
        server.answer = know
        yield server


def know(body: Mapping[str, Any]) -> str:
    return f"37 {len(json.dumps(body))}" if "37 attempts" in json.dumps(body) else "No idea."


BOTH = "--upskill-models=a=anthropic:claude-x,o=openai:gpt-x"


def notes() -> list[Path]:
    return sorted(Path(".upskill/batches").glob("*.json"))


def test_all_answers_come_from_one_batch_of_each_model_at_half_the_price(
    run: Run, write_skill: WriteSkill, server: BatchServer
) -> None:
    write_skill(*budget_cases(3))

    result = run(BOTH, "--upskill-batch", "--upskill-runs=2", "--upskill-max-cost=1", "skills")
    again = run(BOTH, "--upskill-runs=2", "skills")

    assert result.ret == again.ret == pytest.ExitCode.OK
    assert [len(batch.bodies) for batch in server.batches.values()] == [12, 12]
    assert server.direct == 0
    assert notes() == []
    assert server.billed == pytest.approx(24 * 0.5 * 200e-6)
    result.stdout.fnmatch_lines(
        [
            "*24 to request*, in batches, but for agents, triggers and hosts without them: *",
            "requested 24 answers: $0.0024",
        ]
    )
    again.stdout.fnmatch_lines(["*replayed 24 answers: $0.0024*"])


def test_a_suite_costs_at_most_55_percent_of_what_it_costs_without_batches(
    run_once: Run, write_skill: WriteSkill, server: BatchServer
) -> None:
    write_skill(*budget_cases(10))
    args = (BOTH, "--upskill-runs=5", "--upskill-cache=refresh", "skills")

    run_once(*args)
    usual, server.billed = server.billed, 0.0
    run_once(*args, "--upskill-batch")

    assert server.direct == 10 * 2 * 5 * 2
    assert 0 < server.billed <= 0.55 * usual


@pytest.mark.parametrize("model", ["a=anthropic:claude-x", "o=openai:gpt-x"])
def test_a_request_that_errs_or_expires_is_missing_and_costs_nothing(
    run_once: Run, write_skill: WriteSkill, server: BatchServer, model: str
) -> None:
    write_skill(*budget_cases(3))
    server.fate = lambda body: (
        "errored"
        if "(1)" in json.dumps(body)
        else "expired"
        if "(2)" in json.dumps(body)
        else "succeeded"
    )

    result = run_once(f"--upskill-models={model}", "--upskill-batch", "skills")

    assert result.ret == NOT_MEASURED
    result.stdout.fnmatch_lines(
        ["*HTTP 400 prompt is too odd*", "*the batch *expired before this request: run again*"]
    )
    result.stdout.fnmatch_lines(["requested 2 answers: $0.0002"])
    assert server.billed == pytest.approx(200e-6)


def test_judgements_go_in_a_batch_of_their_own(
    run_once: Run, write_skill: WriteSkill, server: BatchServer
) -> None:
    cases = [
        {"id": f"c{n}", "input": f"Why {n}?", "expected": {"judge": "It says 37."}}
        for n in range(4)
    ]
    write_skill(*cases)
    server.answer = lambda body: (
        json.dumps({"verdicts": [{"holds": True, "evidence": "37"}]})
        if "It says 37." in json.dumps(body)
        else know(body)
    )

    run_once(
        "--upskill-models=a=anthropic:claude-x", "--upskill-judge=j=openai:gpt-x",
        "--upskill-batch", "skills",
    )  # fmt: skip

    first, judged, *_ = server.batches.values()
    assert (first.kind, len(first.bodies)) == ("msgbatch", 8)
    assert (judged.kind, len(judged.bodies)) == ("batch", 8)
    assert server.direct == 0


def leave(run: Run, server: BatchServer, *args: str) -> str:
    """Start a run, and interrupt it once its batches are submitted; return its output."""
    server.polls_needed = 10**6
    ended = threading.Event()
    count = 2 if BOTH in args else 1

    def interrupt() -> None:
        while sum(batch.polls > 0 for batch in server.batches.values()) < count:
            ended.wait(0.02)
        import _thread

        _thread.interrupt_main()
        # Again, as Python only prints an interruption that falls into a finalizer.
        while not ended.wait(10):
            _thread.interrupt_main()

    threading.Thread(target=interrupt, daemon=True).start()
    output = run(*args, no_reraise_ctrlc=True).stdout.str()
    ended.set()
    server.polls_needed = 1
    return output


@pytest.mark.parametrize("model", ["a=anthropic:claude-x", "o=openai:gpt-x"])
def test_a_batch_that_was_left_is_collected_by_the_same_command(
    run_once: Run, write_skill: WriteSkill, server: BatchServer, model: str
) -> None:
    write_skill(*budget_cases(3))
    args = (f"--upskill-models={model}", "--upskill-batch", "--upskill-max-cost=0.3", "skills")

    said = leave(run_once, server, *args)
    (left,) = notes()
    noted = left.read_text("utf-8")
    result = run_once(*args)

    assert "a batch of 6 requests to" in said
    assert "key-of-a-vendor" not in noted
    assert result.ret == pytest.ExitCode.OK
    assert (len(server.batches), server.direct, notes()) == (1, 0, [])
    result.stdout.fnmatch_lines(["requested 6 answers: $0.0006"])


def test_a_run_without_batches_cancels_what_was_left_and_asks_as_usual(
    run_once: Run, write_skill: WriteSkill, server: BatchServer
) -> None:
    write_skill(*budget_cases(2))
    leave(run_once, server, BOTH, "--upskill-batch", "skills")
    server.polls_needed = 3 + max(batch.polls for batch in server.batches.values())

    result = run_once(BOTH, "skills")

    assert result.ret == pytest.ExitCode.OK
    assert all(batch.canceled for batch in server.batches.values())
    assert (server.direct, notes()) == (8, [])


def test_a_batch_that_was_left_counts_against_the_budget_from_the_start(
    run_once: Run, write_skill: WriteSkill, server: BatchServer
) -> None:
    write_skill(*budget_cases(3))
    model = "--upskill-models=a=anthropic:claude-x"
    leave(run_once, server, model, "--upskill-batch", "skills")
    server.polls_needed = 10**6

    result = run_once("--upskill-models=o=openai:gpt-x", "--upskill-max-cost=0.06", "-rs", "skills")

    assert server.direct == 0
    result.stdout.fnmatch_lines(["*could exceed $0.06, as batches that were left may cost $0.05*"])


def test_early_stop_which_needs_one_round_before_the_next_is_refused(run_once: Run) -> None:
    result = run_once(BOTH, "--upskill-batch", "--upskill-early-stop", "skills")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --upskill-early-stop: --upskill-batch needs all runs: *"])


def test_a_server_without_batches_is_asked_as_usual(
    run_once: Run, write_skill: WriteSkill, server: BatchServer
) -> None:
    write_skill(*budget_cases(2))
    server.fail = lambda _, path: 404 if path in {"/v1/files", "/v1/batches"} else None

    result = run_once("--upskill-models=o=openai:gpt-x", "--upskill-batch", "skills")

    assert result.ret == pytest.ExitCode.OK
    assert (server.direct, notes()) == (4, [])
    said = f"upskill: {server.url}/v1 has no batches: its requests were sent at the full price"
    result.stdout.fnmatch_lines_random([said])


def test_a_server_of_your_own_may_have_batches(
    run_once: Run,
    write_skill: WriteSkill,
    monkeypatch: pytest.MonkeyPatch,
    server: BatchServer,
) -> None:
    write_skill(*budget_cases(2))
    monkeypatch.delenv("OPENAI_BASE_URL")

    result = run_once(
        f"--upskill-models=o=openai:gpt-x@{server.url}/v1", "--upskill-batch", "skills"
    )

    assert result.ret == pytest.ExitCode.OK
    assert (len(server.batches), server.direct) == (1, 0)


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("address", ["", "https://gateway.example/v1"])
def test_the_plan_has_half_the_price_only_where_the_vendor_itself_is_asked(
    run_once: Run,
    write_skill: WriteSkill,
    monkeypatch: pytest.MonkeyPatch,
    address: str,
) -> None:
    write_skill(*budget_cases(2))
    monkeypatch.delenv("OPENAI_BASE_URL")
    if address:
        monkeypatch.setenv("OPENAI_BASE_URL", address)
    args = ("--upskill-models=o=openai:gpt-x", "--upskill-dry-run", "skills")

    usual, batched = (
        re.search(r"at most \$([\d.]+)", str(run_once(*args, *batch).stdout))
        for batch in ((), ("--upskill-batch",))
    )

    assert usual
    assert batched
    share = float(batched[1]) / float(usual[1])
    assert share == pytest.approx(1 if address else 0.5, abs=0.01)


def test_a_submission_that_is_refused_for_now_is_repeated(
    run_once: Run, write_skill: WriteSkill, server: BatchServer
) -> None:
    write_skill(*budget_cases(2))
    refusals = iter([429, 503])
    server.fail = lambda method, path: (
        next(refusals, None) if (method, path) == ("POST", "/v1/messages/batches") else None
    )

    result = run_once("--upskill-models=a=anthropic:claude-x", "--upskill-batch", "skills")

    assert result.ret == pytest.ExitCode.OK
    assert len(server.batches) == 1


def test_a_batch_whose_file_did_not_arrive_leaves_nothing(
    run_once: Run, write_skill: WriteSkill, server: BatchServer
) -> None:
    write_skill(*budget_cases(2))
    drops = iter([0])
    server.fail = lambda _, path: next(drops, None) if path == "/v1/files" else None

    result = run_once("--upskill-models=o=openai:gpt-x", "--upskill-batch", "skills")

    assert result.ret == pytest.ExitCode.OK
    assert (len(server.batches), notes()) == (1, [])


def test_a_batch_that_may_have_been_submitted_is_named_with_its_file(
    run_once: Run, write_skill: WriteSkill, server: BatchServer
) -> None:
    write_skill(*budget_cases(2))
    drops = iter([0])
    server.fail = lambda _, path: next(drops, None) if path == "/v1/batches" else None
    model = "--upskill-models=o=openai:gpt-x"

    result = run_once(model, "--upskill-batch", "skills")

    (note,) = notes()
    said = re.sub(r"\s+", " ", result.stdout.str())
    assert f"may have been submitted, though {server.url}/v1 did not say so" in said
    assert f"{note.name}; until then" in said


def test_a_submission_that_a_content_filter_refuses_is_missing_data(
    run_once: Run, write_skill: WriteSkill, server: BatchServer
) -> None:
    write_skill(*budget_cases(2))
    server.fail = lambda method, _: 400 if method == "POST" else None
    server.why = "refused by the content_filter"

    result = run_once("--upskill-models=a=anthropic:claude-x", "--upskill-batch", "skills")

    assert result.ret == NOT_MEASURED
    result.stdout.fnmatch_lines(["*not measured: *content_filter*"])
