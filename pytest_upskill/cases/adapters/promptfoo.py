"""promptfoo: a ``promptfooconfig.yaml``, or a file of tests that one lists.

Read: ``src/assertions/`` of https://github.com/promptfoo/promptfoo, stored November 2026 (about
version 0.123), and configurations beside skills in public repositories.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import product
from typing import Annotated, Any

from jinja2 import StrictUndefined, TemplateError
from jinja2.sandbox import SandboxedEnvironment

from pytest_upskill.cases.adapters.adapter import NOTHING, Adapter, Draft, Entry, Reads, Shape, keys
from pytest_upskill.cases.adapters.choice import Choice, choice_of
from pytest_upskill.cases.adapters.fields import Name, Prompt, Skill
from pytest_upskill.cases.adapters.graders import (
    BUDGET,
    NOT_CHECKED,
    RUBRIC,
    Grader,
    judged,
    literals,
    patterns,
)
from pytest_upskill.cases.adapters.trigger_lists import PROMPTS
from pytest_upskill.checks import AnyCheck
from pytest_upskill.checks.structure import JsonSchema

_LITERAL = re.compile(r"(?P<fold>i)?contains(?:-(?P<which>any|all))?")
_JUDGED = {
    "llm-rubric": RUBRIC,
    "g-eval": RUBRIC,
    "model-graded-closedqa": RUBRIC,
    "factuality": "The answer agrees with this reference: ",
    "model-graded-factuality": "The answer agrees with this reference: ",
    "answer-relevance": "The answer is relevant to the question: ",
}
_BUDGETS = frozenset({"latency", "cost", "perplexity", "perplexity-score", "word-count"})
_SCRIPTS = frozenset({"javascript", "python", "ruby", "webhook"})


class Assertion(Grader):
    """An assertion; a type that begins with ``not-`` is the opposite."""

    measured = (
        "assertions, and their `not-`: of texts, patterns, JSON and `skill-used`; `llm-rubric` and "
        "the like are for a judge; left out: scripts, costs, similarity, traces"
    )
    value: Any = None
    assert_: tuple[Assertion, ...] = ()
    threshold: Any = None
    routes: bool = False
    """Whether the answer is the name of a skill, as in tests of routing."""

    def read(self) -> Draft:
        """See `Grader.read`."""
        negate, kind = self.type.startswith("not-"), self.type.removeprefix("not-")
        if isinstance(self.value, str) and self.value.startswith("file://"):
            raise ValueError(f"{self.value} is not read")
        if kind == "assert-set" and self.threshold is None:
            return sum((each.draft() for each in self.assert_), NOTHING)
        if kind == "skill-used":
            return self._skill_used(negate=negate)
        if kind == "equals" and self.routes:
            return Draft(choice=choice_of(self.value))
        if kind in _JUDGED and not negate:
            return Draft(checks=judged(self.value, prefix=_JUDGED[kind]))
        return Draft(checks=self._checks(kind, negate=negate))

    def _checks(self, kind: str, *, negate: bool) -> tuple[AnyCheck, ...]:
        if found := _LITERAL.fullmatch(kind):
            if negate and found["which"] == "all":
                raise ValueError("one missing text is enough, which no check here can say")
            value = self.value
            if found["which"] and isinstance(value, str):
                value = [text.strip() for text in value.split(",")]
            return literals(
                value, ignore_case=bool(found["fold"]), negate=negate,
                any_of=found["which"] == "any",
            )  # fmt: skip
        text = re.escape(str(self.value))
        match kind:
            case "regex":
                return patterns(self.value, negate=negate)
            case "equals" if not isinstance(self.value, dict):
                return patterns(rf"\A{text}\z", negate=negate)
            case "starts-with":
                return patterns(rf"\A{text}", negate=negate)
            case "ends-with":
                return patterns(rf"{text}\z", negate=negate)
            case "is-json" | "contains-json" if not negate:
                return (JsonSchema(schema=self.value if isinstance(self.value, dict) else {}),)
        raise ValueError(_why_not(kind))

    def _skill_used(self, *, negate: bool) -> Draft:
        value = self.value
        if isinstance(value, dict):
            negate = negate or value.get("max") == 0
            value = value.get("name")
        names = tuple(value) if isinstance(value, list) else (value,)
        if not all(isinstance(name, str) for name in names):
            raise ValueError("names no skill")
        return Draft(choice=Choice(forbidden=names) if negate else Choice(expected=names))


def _why_not(kind: str) -> str:
    if kind in _BUDGETS:
        return BUDGET
    if kind in _SCRIPTS:
        return "its script is not run"
    return NOT_CHECKED if kind.startswith(("trajectory", "tool", "trace")) else "is not known"


def _unrendered(value: object) -> Draft:
    return Draft(lacks=(str(value),))


class Test(Shape):
    """A test, with its question written out; see `_written_out`."""

    description: Name = keys("description", "id")
    skill: Skill = NOTHING
    prompt: Prompt = NOTHING
    vars: Annotated[Draft, Reads(_unrendered, "values for the prompt")] = NOTHING
    assert_: tuple[Assertion, ...] = ()


def _find(value: Any) -> list[Entry]:
    """Return the tests of a configuration or of a file of tests, one for each prompt."""
    config = value if isinstance(value, dict) else {"tests": value}
    at = ("tests",) if config is value else ()
    tests = config.get("tests")
    return [
        Entry((*at, index), case)
        for index, test in enumerate(tests if isinstance(tests, list) else ())
        if isinstance(test, dict) and ("vars" in test or "assert" in test)
        for case in _written_out(test, config)
    ]


def _written_out(test: Mapping[str, Any], config: Mapping[str, Any]) -> Iterator[Any]:
    """Yield a test once for each choice among the lists in its variables, without templates."""
    default = _object(config.get("defaultTest"))
    metadata = _object(test.get("metadata"))
    routes = metadata.get("type") in {"trigger", "routing"}
    given = {**(default.get("vars") or {}), **(test.get("vars") or {})}
    lists = [value if isinstance(value, list) else [value] for value in given.values()]
    is_one = all(len(values) == 1 for values in lists)
    for values in product(*lists):
        chosen = dict(zip(given, values, strict=True))
        assertions = [*(test.get("assert") or ()), *(default.get("assert") or ())]
        case: dict[str, Any] = {
            **{key: test[key] for key in ("description", "id") if key in test and is_one},
            **({"skill": metadata["skill"]} if "skill" in metadata else {}),
            "assert": [{**_rendered(each, chosen), "routes": routes} for each in assertions],
        }
        try:
            yield case | {"prompt": _prompt(config, chosen)}
        except (TemplateError, ValueError) as error:
            yield case | {"prompt": str(test.get("vars") or ""), "vars": str(error)}


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _prompt(config: Mapping[str, Any], chosen: Mapping[str, Any]) -> str:
    """Return the question: the only prompt of the file with its variables, or a variable.

    Raises:
        TemplateError: A variable is missing.
        ValueError: There is no such question.
    """
    prompts = config.get("prompts")
    prompts = prompts if isinstance(prompts, list) else [prompts] if prompts else []
    if len(prompts) > 1:
        raise ValueError(f"{len(prompts)} prompts: keep the one that has no skill")
    if prompts and isinstance(prompts[0], str) and not prompts[0].startswith("file://"):
        rendered = _ENVIRONMENT.from_string(prompts[0]).render(chosen)
    else:
        rendered = next((str(chosen[key]) for key in (*PROMPTS, "user_input") if key in chosen), "")
    if not rendered.strip() or "file://" in rendered:
        raise ValueError("the prompt is in another file, which is not read")
    return rendered


def _rendered(value: Any, chosen: Mapping[str, Any]) -> Any:
    if isinstance(value, dict):
        return {key: _rendered(part, chosen) for key, part in value.items()}
    if isinstance(value, list):
        return [_rendered(part, chosen) for part in value]
    if isinstance(value, str) and "{{" in value:
        with suppress(TemplateError):
            return _ENVIRONMENT.from_string(value).render(chosen)
    return value


_ENVIRONMENT = SandboxedEnvironment(undefined=StrictUndefined, autoescape=False)

ADAPTER = Adapter(
    tool="promptfoo",
    about="https://www.promptfoo.dev/docs/configuration/, version 0.123",
    places=("*promptfoo*.{yaml,yml,json}", "*{tests,cases,routing}*.{yaml,yml}"),
    find=_find,
    shape=Test,
    example="""\
prompts: ["{{question}}"]
tests:
  - vars: {question: Which column has missing values?}
    assert:
      - {type: icontains, value: price}
      - {type: llm-rubric, value: Says how many are missing}
""",
)
