"""The first request fills the provider's prompt cache for the others."""

from __future__ import annotations

import threading

import pytest

from tests.conftest import Run, WriteSkill, budget_cases
from tests.loopback import Loopback, Received, Reply

CASES = budget_cases(5)
LONG = "The retry budget of the billing service is 37 attempts.\n" * 40
SHORT = "It is 37.\n"


class Watch:
    """Answers, and counts the requests before the first answer to one with the skill."""

    def __init__(self) -> None:
        self.before = {"with": 0, "without": 0}
        self.failing = False
        self._answered = False
        self._lock = threading.Lock()
        self._all_early = threading.Event()

    def answer(self, received: Received) -> Reply:
        arm = "with" if "37" in received.system else "without"
        with self._lock:
            if not self._answered:
                self.before[arm] += 1
            first = arm == "with" and self.before["with"] == 1 and not self._answered
            if sum(self.before.values()) >= 2 * len(CASES):
                self._all_early.set()
        if first:
            # Whoever need not wait for this answer has come by then.
            self._all_early.wait(0.5)
            with self._lock:
                self._answered = True
            if self.failing:
                return Reply(status=400, text="no such parameter")
        return Reply(text="37")


@pytest.fixture
def watch(loopback: Loopback, monkeypatch: pytest.MonkeyPatch) -> Watch:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", loopback.url)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a-key")
    watch = Watch()
    loopback.answer = watch.answer
    return watch


def test_one_request_with_the_skill_goes_before_the_others_that_read_its_cached_block(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback, watch: Watch
) -> None:
    write_skill(*CASES, body=LONG)

    run_once("--upskill-models", "haiku", "skills")

    assert watch.before == {"with": 1, "without": 5}
    assert len(loopback.requests) == 10


def test_a_first_call_that_fails_lets_the_others_go(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback, watch: Watch
) -> None:
    watch.failing = True
    write_skill(*CASES, body=LONG)

    result = run_once("--upskill-models", "haiku", "skills")

    assert result.parseoutcomes()["errors"] == 1
    assert len(loopback.requests) == 10


@pytest.mark.parametrize(
    ("model", "body"),
    [
        ("haiku", SHORT),
        ("m=anthropic:claude-haiku-5-5@{url}", LONG),
    ],
    ids=["a short skill", "a server of one's own"],
)
def test_without_a_cached_block_no_request_waits_for_the_first(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback, watch: Watch, model: str, body: str
) -> None:
    write_skill(*CASES, body=body)

    run_once("--upskill-models", model.format(url=loopback.url), "skills")

    assert watch.before == {"with": 5, "without": 5}


def test_after_the_first_request_the_others_go_together(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback, watch: Watch
) -> None:
    del watch
    write_skill(*CASES, body=LONG)
    loopback.answer = lambda _: Reply(text="37", delay=0.3)

    run_once("--upskill-models", "haiku", "-k", "with_skill", "skills")

    assert loopback.peak == 4
