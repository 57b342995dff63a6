"""What goes on now, counted for the progress line."""

from __future__ import annotations

from pytest_upskill.answers.progress import InFlight
from tests.answers.retrying import Clock


def test_activities_are_counted_by_kind_with_their_ages() -> None:
    clock = Clock()
    activity = InFlight(clock=clock)

    with activity.doing("asking"), activity.doing("compile"):
        clock.now = 3.0
        with activity.doing("asking"):
            clock.now = 5.0

            assert activity.ages("asking") == [5.0, 2.0]
            assert activity.ages("compile") == [5.0]

    assert activity.ages("asking") == []


def test_of_several_waits_for_a_host_the_one_that_ends_first_is_shown() -> None:
    clock = Clock()
    activity = InFlight(clock=clock)
    activity.pause("a.example", "rate limit", 30.0)
    activity.pause("a.example", "rate limit", 12.0)
    activity.pause("a.example", "HTTP 503", 20.0)

    clock.now = 2.0

    assert activity.pauses() == {("a.example", "rate limit"): 10.0, ("a.example", "HTTP 503"): 18.0}


def test_a_wait_is_over_when_its_time_is() -> None:
    clock = Clock()
    activity = InFlight(clock=clock)
    activity.pause("a.example", "rate limit", 12.0)

    clock.now = 12.0

    assert activity.pauses() == {}
