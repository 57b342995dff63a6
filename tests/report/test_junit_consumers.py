"""What those who read JUnit XML ask of it; the numbers are theirs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import QUESTION, Run, WriteSkill
from tests.junit import properties, suite

AZURE_NAME = 512
CODECOV_NAME = 1000
TRUNK_FIELD = 1000
ENRICOMI_DETAILS = 64_000
WORDS = [f"{'word' * 40}{number}" for number in range(200)]
CASES = [
    {"id": "red", "input": QUESTION, "expected": {"contains": WORDS}},
    {"input": f"{QUESTION} " * 40, "expected": {"contains": "37"}},
    {"input": f"{QUESTION} " * 41, "expected": {"contains": "37"}},
    {"id": "émoji 🎈", "input": QUESTION, "expected": {"contains": "37"}},
]


@pytest.mark.parametrize("family", ["xunit1", "xunit2"])
def test_the_file_keeps_to_what_its_readers_take_and_has_what_they_look_for(
    run: Run, write_skill: WriteSkill, family: str
) -> None:
    # Given hard names and long failures.
    write_skill(*CASES)
    write_skill(*CASES, name="csv")
    xml = Path("results.xml")

    run(
        "--upskill-models=offline,b=offline:b",
        "--upskill-runs=2",
        f"--junitxml={xml}",
        f"--override-ini=junit_family={family}",
    )

    cases = suite(xml).findall("testcase")

    # GitLab drops what has the name of another; mikepenz keeps the success, hiding a failure.
    names = [(case.attrib["classname"], case.attrib["name"]) for case in cases]
    assert len(set(names)) == len(names) == 2 * 2 * (2 * len(CASES) + 1)
    # No name tells a run, a date or a digest: histories would end with each run.
    assert all(len(name) <= AZURE_NAME for _, name in names)
    assert all(len(classname) <= CODECOV_NAME for classname, _ in names)
    for case in cases:
        for failure in (*case.findall("failure"), *case.findall("error")):
            message = failure.attrib["message"]
            assert len(message) <= TRUNK_FIELD
            assert "\n" not in message
            assert message in (failure.text or "")
            assert len((failure.text or "").encode()) <= ENRICOMI_DETAILS
        # Each name once, which `properties` asserts.
        assert properties(case)
