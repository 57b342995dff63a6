"""A new case format is one module with an adapter, and a line in the registry."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_upskill.cases.adapters import keys, make, registry
from pytest_upskill.cases.adapters.adapter import Adapter, Reader, entries_at
from pytest_upskill.cases.load import SkillError, load_skills
from pytest_upskill.cases.skill_files import with_files
from tests.cases.adapters.conftest import QUESTION, SKILL, Measured

RIDDLES = Adapter(
    tool="riddles",
    about="nowhere",
    places=("riddles/*.yaml",),
    find=lambda value: entries_at(value, "riddles"),
    keys={
        "ask": keys.PROMPT,
        "name": keys.NAME,
        "solution": Reader("the answer", make.literals),
    },
)
FILE = f"riddles: [{{ask: '{QUESTION}', name: missing, solution: '37'}}]"


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "ADAPTERS", (RIDDLES, *registry.ADAPTERS))


def test_a_declaration_is_all_that_a_format_needs(measured: Measured) -> None:
    outcomes = measured({"skills/csv/riddles/a.yaml": FILE})

    assert outcomes == {"missing without_skill": "fail", "missing with_skill": "pass"}


def test_its_mistakes_have_a_place(tmp_path: Path) -> None:
    skill, file = tmp_path / "csv" / "SKILL.md", tmp_path / "csv" / "riddles" / "a.yaml"
    file.parent.mkdir(parents=True)
    skill.write_text(SKILL, "utf-8")
    file.write_text("riddles:\n- {ask: 3, solution: b}", "utf-8")

    with pytest.raises(SkillError, match=r"a\.yaml:2:9: riddles\[0\]\.ask: must be non-empty text"):
        load_skills(file)


def test_no_model_sees_its_files(tmp_path: Path) -> None:
    text = SKILL + "\nRead `riddles/a.yaml` and `assets/b.yaml`.\n"
    for name, content in (
        ("SKILL.md", text), ("riddles/a.yaml", FILE), ("assets/b.yaml", FILE.replace("37", "38")),
        ("skill_meta.json", '[{"input": "Who?", "expected": {"contains": "me"}}]'),
    ):  # fmt: skip
        (tmp_path / "csv" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "csv" / name).write_text(content, "utf-8")

    (skill,) = load_skills(tmp_path / "csv" / "skill_meta.json")

    assert "riddles:" not in skill.text
    assert [file.name for file in with_files(skill).files] == ["SKILL.md"]
