"""Checks of the tools that an agent called."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_upskill.cases.skill_meta.expected import Expected
from pytest_upskill.checks.calls import ToolUse


def call(name: str, **arguments: Any) -> ToolUse:
    return ToolUse(name=name, input=json.dumps(arguments))


CALLS = (
    call("Read", file_path="a.py"),
    call("Bash", command='git commit -m "fix"'),
    call("exec_command", cmd="pytest -q"),
    call("Edit", file_path="a.py", old_string="1"),
)


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ({"tool_called": "Read"}, "+tool_called Read: 1 call"),
        ({"tool_called": ["read", "Ed*"]}, "+tool_called Ed*: 1 call"),
        ({"tool_called": "Write"}, "-tool_called Write: 0 calls, at least 1 wanted"),
        ({"tool_called": "bash"}, "+tool_called bash: 2 calls"),
        (
            {"tool_called": {"name": "bash", "most": 1}},
            "-tool_called bash: 2 calls, at most 1 wanted",
        ),
        ({"tool_called": {"name": "Write", "most": 1}}, "+tool_called Write: 0 calls"),
        ({"tool_called": {"most": 3}}, "-tool_called *: 4 calls, at most 3 wanted"),
        (
            {"tool_called": {"name": ["Edit", "Write"], "pattern": r"a\.py$", "least": 2}},
            "-tool_called Edit|Write with 'a\\.py$': 1 call, at least 2 wanted",
        ),
        (
            {"tool_called": {"pattern": '^git commit -m "'}},
            "+tool_called * with '^git commit -m \"': 1 call",
        ),
        ({"tool_order": ["Read", "Edit"]}, "+tool_order Read, Edit"),
        (
            {"tool_order": [{"name": "bash", "pattern": "pytest"}, {"pattern": "commit"}]},
            "-tool_order bash with 'pytest', * with 'commit': * with 'commit' was called too early",
        ),
        ({"tool_order": ["Read", "Write"]}, "-tool_order Read, Write: Write was never called"),
    ],
)
def test_calls_are_counted_and_put_in_order(expected: dict[str, Any], message: str) -> None:
    *_, check = Expected.model_validate(expected).deciding(expected)

    result = check.check_calls(CALLS)  # type: ignore[union-attr]  # they are of calls

    assert ("+" if result.passed else "-") + result.message == message
