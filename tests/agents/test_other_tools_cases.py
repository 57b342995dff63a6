"""Graders of other tools that look at what an agent did and left."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.agents.scripted_agent import COMPUTE, LOAD, SKILL, Step, call, following
from tests.conftest import Run
from tests.loopback import Loopback

DONE: list[Step] = [LOAD, COMPUTE, call("read_file", path="total.txt"), "It is 350."]
NOT_DONE: list[Step] = [call("write_file", path="infra/main.tf", content="TOTAL"), "Done."]
"""What the agent does with the skill, and without it."""

VALLY = """\
stimuli:
  - name: total
    prompt: Write the total of data/in.txt.
    graders:
      - {type: %s, config: %s}
"""
WAZA = """\
id: total
name: Total
inputs: {prompt: Write the total of data/in.txt.}
graders:
  - {type: %s, name: done, config: %s}
"""
PLUGIN = """\
schema_version: "1.1"
name: total
execution: {prompt: Write the total of data/in.txt.}
graders:
  - {type: %s, name: done, %s}
"""
FILES = {VALLY: "eval.yaml", WAZA: "tasks/total.yaml", PLUGIN: "total/case.yaml"}
CALLS = "{name: '(?i)^(bash|pwsh)$', command: '\\btotal\\.(txt|csv)$'}"
UNWANTED = "{name: '^(create|create_file)$'}"


@pytest.mark.parametrize(
    ("suite", "kind", "config"),
    [
        (VALLY, "tool-calls", f"{{required: [{CALLS}]}}"),
        (VALLY, "tool-calls", f"{{disallowed: [{UNWANTED}]}}"),
        (VALLY, "shell-command-invoked", "{required: [{command: '(?i)TOTAL'}]}"),
        (VALLY, "file-not-exists", "{path: '**/*.tf'}"),
        (VALLY, "run-command", "{command: test, args: ['!', -e, infra/main.tf]}"),
        (WAZA, "behavior", "{required_tools: [bash]}"),
        (WAZA, "behavior", "{forbidden_tools: [write_file]}"),
        (WAZA, "file", "{must_not_exist: [infra/main.tf]}"),
        (PLUGIN, "tool_used", "tool: Bash, input_match: 'total\\.txt'"),
        (PLUGIN, "tool_used", "tool: write_file, max: 0"),
        (PLUGIN, "tool_used", "tool: Bash, max: 2"),  # and at least one
        (PLUGIN, "tool_order", "before: Bash, after: {tool: read_file, input_match: total}"),
        (PLUGIN, "file_exists", "path: infra/main.tf, exists: false"),
    ],
)
def test_what_an_agent_did_and_left_is_checked_in_both_arms(
    run_once: Run, loopback: Loopback, suite: str, kind: str, config: str
) -> None:
    path = Path("skills/sums/evals", FILES[suite])
    path.parent.mkdir(parents=True)
    path.write_text(suite % (kind, config), "utf-8")
    Path("skills/sums/SKILL.md").write_text(SKILL, "utf-8")
    loopback.answer = following(DONE, NOT_DONE)

    run_once(
        f"--upskill-models=loop:small@{loopback.openai_url}", "skills", "--upskill-json=o.json"
    )

    (entry,) = json.loads(Path("o.json").read_text("utf-8"))["entries"]
    assert entry["figures"]["lift"] == 1.0
