"""``--upskill-at-k``: pass@k and pass^k of each arm, in every report that is asked for them."""

from __future__ import annotations

import json
from math import comb
from pathlib import Path

import pytest

from pytest_upskill.stats import pass_at_k, pass_hat_k
from tests.conftest import Run
from tests.scripted_model import Script

REPORTS = ("--upskill-json=r.json", "--upskill-md=r.md", "--upskill-html=r.html")


def test_every_report_has_both_for_each_arm(script: Script, run_once: Run) -> None:
    args = script(one="++++- ----+", two="+++++ -----")

    result = run_once(*args, "--upskill-at-k=3", "--junit-xml=j.xml", *REPORTS)

    line = "pass@3 30% [4, 83] -> 100% [34, 100], pass^3 0% [0, 66] -> 70% [17, 96]"
    assert any(line in text for text in result.outlines)
    figures = json.loads(Path("r.json").read_text())["entries"][0]["figures"]
    # One pass of five is in three of them with a probability of 6 / 10, and no case else.
    assert figures["pass_at_k.without"] == pytest.approx((1 - comb(4, 3) / comb(5, 3)) / 2)
    assert figures["pass_hat_k.with"] == pytest.approx((comb(4, 3) / comb(5, 3) + 1) / 2)
    assert 'name="upskill.pass_at_k.with" value="1"' in Path("j.xml").read_text()
    assert line.replace("->", "-&gt;") in Path("r.html").read_text()
    assert line in Path("r.md").read_text()


def test_without_k_runs_a_line_says_how_many_are_needed(script: Script, run_once: Run) -> None:
    result = run_once(*script(one="++++- ----+"), "--upskill-at-k=8")

    result.stdout.fnmatch_lines(["*pass@8 is unknown, as no case has 8 runs *--upskill-runs 8"])


def test_the_interval_is_wilsons_for_the_groups_of_k_runs() -> None:
    cases = [(3, 7), (7, 7), (2, 2)]

    at_three = pass_at_k(cases, 3)

    assert at_three is not None
    assert at_three.estimate == pytest.approx((1 - comb(4, 3) / comb(7, 3) + 1) / 2)
    # The third case has too few runs; the others have two groups of three each.
    assert pass_hat_k([(12, 12)], 3) == pass_hat_k([(6, 6), (6, 6)], 3)
    assert pass_hat_k([(1, 1)], 3) is None
