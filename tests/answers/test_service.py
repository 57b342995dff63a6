"""Trials wait for the answers of all their runs."""

from __future__ import annotations

from concurrent.futures import Future

from pytest_upskill.answers.service import join_futures


def test_the_answers_of_a_trial_are_there_with_the_last_of_them_in_the_order_of_its_runs() -> None:
    first, second = Future[int](), Future[int]()
    together = join_futures([first, second])

    second.set_result(2)
    assert not together.done()

    first.set_result(1)
    assert together.result(0) == [1, 2]


def test_a_trial_that_is_stopped_halfway_has_no_answers() -> None:
    first, second = Future[int](), Future[int]()
    together = join_futures([first, second])

    first.set_result(1)
    second.cancel()

    assert together.cancelled()


def test_an_error_of_a_run_is_raised_to_whoever_waits_for_its_trial() -> None:
    only = Future[int]()
    together = join_futures([only])

    only.set_exception(LookupError("gone"))

    assert str(together.exception(0)) == "gone"
