"""The arms differ in the skill alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.conftest import FACT, QUESTION, Run, WriteSkill
from tests.junit import cases_of, properties
from tests.loopback import Loopback, Received
from tests.sdk_requests import every_sdk

CASE = {
    "id": "budget",
    "input": QUESTION,
    "context": {"files": {"limits.toml": "[retry]\nbudget = 37\n"}},
    "expected": {"contains": "37"},
}


def options(loopback: Loopback, provider: str) -> tuple[str, ...]:
    url = loopback.url if provider == "anthropic" else loopback.openai_url
    return "--upskill-models", f"m={provider}:some-model@{url}", "skills"


def arms(loopback: Loopback) -> tuple[Received, Received]:
    """Return what was received with and without the skill."""
    one, other = sorted(loopback.requests, key=lambda received: len(received.system), reverse=True)
    return one, other


def without_system(received: Received) -> dict[str, Any]:
    """Return all that was sent but the system prompt."""
    body = {key: value for key, value in received.body.items() if key != "system"}
    body["messages"] = [each for each in body["messages"] if each["role"] != "system"]
    return body


@every_sdk
def test_the_arms_differ_in_the_skill_block_alone(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback, provider: str
) -> None:
    write_skill(CASE)

    run_once(*options(loopback, provider))

    with_skill, without_skill = arms(loopback)
    assert without_system(with_skill) == without_system(without_skill)
    assert with_skill.system.startswith(without_skill.system)
    block = with_skill.system.removeprefix(without_skill.system)
    assert block.strip().startswith('<skill name="billing">')
    assert block.strip().endswith("</skill>")
    assert FACT.strip() in block
    assert with_skill.path == without_skill.path
    question = f'{QUESTION}\n\n<file name="limits.toml">\n[retry]\nbudget = 37\n\n</file>'
    assert with_skill.user == without_skill.user == question


def test_every_question_comes_with_the_same_skill_block(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback
) -> None:
    write_skill(*(CASE | {"id": f"case-{n}", "input": f"Question {n}?"} for n in range(3)))

    run_once(*options(loopback, "anthropic"), "--upskill-runs", "2")

    blocks = {json.dumps(received.body["system"]) for received in loopback.requests}
    assert len(loopback.requests) == 12
    assert len(blocks) == 2


def test_digests_prove_that_the_arms_were_alike(run_once: Run, write_skill: WriteSkill) -> None:
    xml = Path("x.xml")
    write_skill(CASE, CASE | {"id": "other", "input": "Something else?"})

    run_once("--upskill-models", "offline", f"--junitxml={xml}", "skills")

    of = {name: properties(case) for name, case in cases_of(xml).items() if "gate" not in name}
    prompts = {name: each["upskill.digest.prompt"] for name, each in of.items()}
    skills = {name: each["upskill.digest.skill"] for name, each in of.items()}
    assert prompts["budget[offline-with_skill]"] == prompts["budget[offline-without_skill]"]
    assert prompts["budget[offline-with_skill]"] != prompts["other[offline-with_skill]"]
    assert skills["budget[offline-with_skill]"] == skills["other[offline-with_skill]"] != ""
    assert skills["budget[offline-without_skill]"] == skills["other[offline-without_skill]"] == ""
