"""``--upskill-shard`` splits the cases of a run."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.session.selection import cases_of_shard
from tests.conftest import Run, WriteSkill

CASES = [
    {"id": f"case-{number}", "input": "What is the budget?", "expected": {"contains": "37"}}
    for number in range(7)
]


@given(st.sets(st.text(max_size=5), max_size=60), st.integers(1, 9))
def test_every_case_is_in_one_shard_and_the_shards_are_even(cases: set[str], shards: int) -> None:
    found = [cases_of_shard(cases, number, shards) for number in range(1, shards + 1)]

    assert sorted(case for each in found for case in each) == sorted(cases)
    assert max(map(len, found)) - min(map(len, found)) <= 1


def test_a_new_case_leaves_most_others_in_their_share() -> None:
    cases = [f"case-{number}" for number in range(100)]
    before = [cases_of_shard(cases, number, 4) for number in range(1, 5)]

    after = [cases_of_shard([*cases, "new"], number, 4) for number in range(1, 5)]

    moved = sum(len(one - other) for one, other in zip(before, after, strict=True))
    assert moved <= 3


def test_both_arms_of_a_case_are_in_the_same_share(run_once: Run, write_skill: WriteSkill) -> None:
    write_skill(*CASES)
    found = []

    for number in (1, 2, 3):
        result = run_once("--upskill-models=offline,b=offline", f"--upskill-shard={number}/3", "-v")
        found.append(set(re.findall(r"::(case-\d)\[(\w+)-(with\w*)\]", result.stdout.str())))

    assert sum(map(len, found)) == len(set().union(*found)) == 28
    for shard in found:
        with_ = {(case, model) for case, model, arm in shard if arm == "with_skill"}
        assert with_ == {(case, model) for case, model, arm in shard if arm == "without_skill"}


def test_a_shard_decides_nothing_and_says_why(run: Run, write_skill: WriteSkill) -> None:
    write_skill(*CASES)

    result = run("--upskill-models=offline", "--upskill-shard=1/2", "-rs")

    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["SKIPPED *gate not decided: sharded: merge the reports"])


def test_a_shard_without_a_trial_is_green(run: Run, write_skill: WriteSkill) -> None:
    write_skill()

    first, second = (run("--upskill-models=offline", f"--upskill-shard={n}/2") for n in (1, 2))

    assert first.ret == second.ret == pytest.ExitCode.OK


def test_a_shard_of_a_run_without_tests_is_as_red_as_that_run(
    run: Run, pytester: pytest.Pytester
) -> None:
    pytester.mkdir("skills")

    result = run("--upskill-models=offline", "--upskill-shard=1/2", "skills")

    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_tests_that_are_no_trials_run_in_every_share(
    run_once: Run, write_skill: WriteSkill, pytester: pytest.Pytester
) -> None:
    write_skill()
    pytester.makepyfile("def test_other(): pass")

    results = [run_once("--upskill-models=offline", f"--upskill-shard={n}/2", "-v") for n in (1, 2)]

    for result in results:
        result.stdout.fnmatch_lines(["*::test_other PASSED*"])


@pytest.mark.parametrize("shard", ["0/2", "3/2", "1", "a/b", "1/2/3"])
def test_an_impossible_shard_is_refused(run_once: Run, write_skill: WriteSkill, shard: str) -> None:
    write_skill()

    result = run_once("--upskill-models=offline", f"--upskill-shard={shard}")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: --upskill-shard: bad shard '{shard}': write K/N, *"])
