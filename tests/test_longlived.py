from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from pytest_upskill.providers.sdk_import import long_lived
from tests.conftest import Run, WriteSkill


@pytest.fixture(autouse=True)
def _thawed() -> Iterator[None]:
    """Leave the collector to other tests as it was."""
    gc.unfreeze()
    yield
    gc.unfreeze()
    gc.enable()


def test_what_is_made_is_set_aside_without_a_collection() -> None:
    made = []
    before = gc.get_stats()[0]["collections"]

    with long_lived():
        made += [[number] for number in range(10_000)]

    assert gc.get_stats()[0]["collections"] == before
    assert gc.get_freeze_count() >= len(made)
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()

    with long_lived():
        pass

    assert not gc.isenabled()


def test_a_failed_import_leaves_the_collector_on() -> None:
    with pytest.raises(ImportError), long_lived():
        raise ImportError

    assert gc.isenabled()


def test_other_peoples_tests_meet_the_collector_as_it_was(
    run_once: Run, write_skill: WriteSkill, pytester: pytest.Pytester
) -> None:
    pytester.makeconftest("""
        import gc

        frozen = []

        def pytest_collection():
            frozen.append(gc.get_freeze_count())

        def pytest_collection_modifyitems():
            assert gc.isenabled() and gc.get_freeze_count() <= frozen[0]

        def pytest_runtest_setup():
            assert gc.isenabled() and gc.get_freeze_count() <= frozen[0]
    """)
    write_skill()

    result = run_once("--upskill-models", "offline")

    result.assert_outcomes(passed=3)
