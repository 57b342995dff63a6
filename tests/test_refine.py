"""``pytest-upskill refine``: a version is chosen on train cases and proved on the hold-out."""

from __future__ import annotations

from tests.teaching import LACKING, Depot, adding, line


def test_a_true_fix_is_accepted_and_written_with_apply(depot: Depot) -> None:
    depot.teach = lambda _, __: adding("".join(map(line, LACKING)))

    assert depot.refine("--apply") == 0

    decision = depot.decision()
    assert decision["decision"] == "accepted"
    assert decision["look"] == 1
    assert decision["p"] <= decision["alpha"] == 0.025
    assert line(0) in depot.text
