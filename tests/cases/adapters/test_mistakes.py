"""A mistake in a tool's file is an error of its case or of its file, and is never passed over."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.cases.adapters import keys, make, registry
from pytest_upskill.cases.adapters.adapter import Adapter, Reader, entries_at
from pytest_upskill.cases.discovery import CaseDiscovery
from pytest_upskill.cases.load import SkillError, load_skills
from pytest_upskill.cases.skill import Skill
from tests.cases.adapters.conftest import QUESTION, SKILL
from tests.evals import read


def write(folder: Path, name: str, text: str) -> Path:
    """Write a file of the skill csv, and return its path."""
    for path, content in ((folder / "csv" / "SKILL.md", SKILL), (folder / "csv" / name, text)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, "utf-8")
    return folder / "csv" / name


def load(folder: Path, name: str, text: str) -> Skill:
    (skill,) = load_skills(write(folder, name, text))
    return skill


CASE = {"input": QUESTION, "expected": {"contains": "a"}}

FILES = [
    ("evals/promptfoo.yaml", f"tests: [{{vars: {{prompt: '{QUESTION}'}}, assert: [7]}}]",
     "must be an object, got 7"),
    ("evals/promptfoo.yaml",
     f"tests: [{{vars: {{prompt: '{QUESTION}'}}, assert: [{{type: contians, value: a}}]}}]",
     "assert[0]: unknown type \"contians\" (did you mean 'contains'?)"),
    ("evals/promptfoo.yaml",
     f"tests: [{{vars: {{prompt: '{QUESTION}'}}, assert: [{{type: contains}}]}}]",
     "assert[0]: contains: has no text to look for"),
    ("evals/csv/eval.yaml",
     f"stimuli: [{{name: a, prompt: '{QUESTION}', graders: [{{type: output-contain}}]}}]",
     "unknown type \"output-contain\" (did you mean 'output-contains'?)"),
    ("evals/csv/eval.yaml",
     "stimuli: [{name: a, prompt: 7, graders: [{type: prompt, config: {prompt: a}}]}]",
     "prompt: must be non-empty text, got 7"),
    ("tasks/a.yaml", f"inputs: {{prompt: '{QUESTION}'}}\nexpected: {{should_trigger: 7}}\n",
     "should_trigger: must be true, false or the name of a skill"),
    ("tasks/a.yaml",
     f"inputs: {{prompt: '{QUESTION}'}}\ngraders: [{{type: text, config: {{regex_matchs: a}}}}]\n",
     "text: unknown key \"regex_matchs\" (did you mean 'regex_match'?)"),
    ("tasks/a.yaml", f"inputs: {{prompt: '{QUESTION}'}}\nexpected: [price]\n",
     "expected: must be an object"),
    ("evals/a/case.yaml",
     f"schema_version: '1.1'\nexecution: {{prompt: '{QUESTION}'}}\ngraders: [{{type: tool_usde}}]",
     "did you mean 'tool_used'?"),
    ("csv.eval.yaml", f"skills: [.]\ntasks: [{{prompt: '{QUESTION}', activates: {{a: b}}}}]\n",
     "activates: must be true, false or the name of a skill"),
    ("cases.json", json.dumps({"cases": [{"input": QUESTION, "expected": {"compile": "c"}}]}),
     "expected: 'compile': only skill_meta.json can have it: give the file that name, beside"),
    ("cases.json", json.dumps({"cases": [{"input": QUESTION, "expected": {"contians": "a"}}]}),
     "expected: unknown type \"contians\" (did you mean 'contains'?)"),
    ("evals/evals.json", json.dumps({"gate": {"min_lift": 0.9}, "cases": [CASE]}),
     "gate: only skill_meta.json can have it: give the file that name, beside the SKILL.md"),
    ("cases.json", json.dumps({"defaults": {"min_pass_rate": 0.9}, "cases": [CASE]}),
     "defaults: only skill_meta.json can have it: give the file that name"),
    ("cases.json", json.dumps({"cases": [CASE | {"min_pass_rate": 0.9}]}),
     "min_pass_rate: only skill_meta.json can have it: give the file that name"),
    ("evals/trigger-routing.json", json.dumps([{"query": QUESTION, "should_trigger": {"a": 1}}]),
     "should_trigger: must be true, false or the name of a skill"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "problem"), FILES)
def test_a_file_with_one_wrong_value_is_of_its_tool_and_an_error(
    name: str, text: str, problem: str, tmp_path: Path
) -> None:
    file = write(tmp_path, name, text)

    assert CaseDiscovery(root=tmp_path).is_case_file(file)
    with pytest.raises(SkillError) as caught:
        load_skills(file)
    assert problem in str(caught.value)


def test_beside_a_good_case_it_is_a_case_that_is_not_measured_and_lint_fails(
    tmp_path: Path,
) -> None:
    tests = [
        {
            "description": name,
            "vars": {"prompt": QUESTION},
            "assert": [{"type": kind, "value": "a"}],
        }
        for name, kind in (("bad", "icontians"), ("good", "icontains"))
    ]

    skill = load(tmp_path, "evals/promptfoo.json", json.dumps({"tests": tests}))

    bad, good = skill.cases
    assert (bad.checks, good.skip) == ((), None)
    assert (bad.skip or "").endswith("(did you mean 'icontains'?)")
    assert [each.endswith("(the case is skipped)") for each in skill.warnings] == [True]


@pytest.mark.parametrize(
    "kind", ["bleu", "not-is-sql", "search-rubric", "trajectory:tool-used", "select-best"]
)
def test_a_type_that_promptfoo_has_is_no_mistake(kind: str, tmp_path: Path) -> None:
    assertions = [{"type": "contains", "value": "price"}, {"type": kind, "value": "a"}]
    test = {"vars": {"prompt": QUESTION}, "assert": assertions}

    skill = load(tmp_path, "evals/promptfoo.json", json.dumps({"tests": [test]}))

    assert [case.skip for case in skill.cases] == [None]
    assert (skill.warnings, len(skill.hints)) == ((), 1)


def test_a_check_that_nothing_here_decides_is_a_hint_even_if_no_other_is_left() -> None:
    def case(*kinds: str) -> Any:
        assertions = [{"type": kind, "value": 9} for kind in kinds]
        return {"prompt": f"Say {kinds}", "assertions": assertions}

    found = read([case("max_tokens"), case("max_tokens", "contains")])

    why = "assertions: max_tokens: no check here can decide it"
    count = "(left out of 2 cases, 1 skipped)"
    assert [case.skip for case in found.cases] == [why, None]
    assert [(each.is_hint, each.what) for each in found.warnings] == [(True, f"{why} {count}")]


@pytest.mark.parametrize(
    ("name", "beside", "problem"),
    [
        ("evals/a/prompt.md", "evals/a/graders/b.md", "b.md:3:"),
        ("evals/a/prompt.md", "evals/a/case.yaml", "case.yaml:2:"),
        ("evals/a/task.md", "evals/a/criteria.json", "criteria.json:1:"),
        ("tasks/a.yaml", "eval.yaml", "eval.yaml:2:"),
    ],
)
def test_a_broken_file_that_belongs_to_a_case_is_an_error_of_it(
    name: str, beside: str, problem: str, tmp_path: Path
) -> None:
    text = QUESTION if name.endswith(".md") else f"inputs: {{prompt: '{QUESTION}'}}"
    file = write(tmp_path, name, text)
    write(tmp_path, beside, "---\ntype: [\n---\n" if beside.endswith(".md") else "graders: [\n")

    assert CaseDiscovery(root=tmp_path).is_case_file(file)
    with pytest.raises(SkillError, match=problem):
        load_skills(file)


def test_a_mistake_in_an_adapter_is_not_taken_for_another_kind_of_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wrong = Reader("the answer", lambda value: make.literals(value.text))
    riddles = Adapter(
        tool="riddles",
        about="",
        places=("*.yaml",),
        find=lambda value: entries_at(value, "riddles"),
        keys={"ask": keys.PROMPT, "solution": wrong},
    )
    monkeypatch.setattr(registry, "ADAPTERS", (riddles,))

    with pytest.raises(AttributeError):
        registry.read(Path("a.yaml"), "riddles: [{ask: Who?, solution: me}]")
