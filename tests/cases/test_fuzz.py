"""No reader of untrusted text crashes or hangs: it reads, or refuses line by line."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests import fuzz


# A search that takes too long may be interrupted in Hypothesis's callback of the garbage collector,
# where the exception is lost; the next signal ends it.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("target", fuzz.TARGETS, ids=lambda target: target.__name__)
def test_no_text_crashes_or_hangs_a_reader(target: Callable[[str], None]) -> None:
    assert fuzz.run(target, examples=100) < fuzz.MOST_SECONDS
