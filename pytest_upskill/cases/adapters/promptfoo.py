"""promptfoo: a ``promptfooconfig.yaml``, or a file of tests that one lists.

Read: ``src/assertions/`` of https://github.com/promptfoo/promptfoo, stored November 2026 (about
version 0.123), and configurations beside skills in public repositories.
"""

import csv
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import product
from typing import Any

from pytest_upskill.cases.adapters import keys, make
from pytest_upskill.cases.adapters.adapter import Adapter, Entry, Part, Reader, entries_at
from pytest_upskill.cases.adapters.choice import skills_in
from pytest_upskill.cases.adapters.draft import Draft, Flaw, Weight, as_list, left_out
from pytest_upskill.cases.adapters.evals_json import PROMPTS
from pytest_upskill.checks.structure import JsonSchema


def _contains(grader: make.Given) -> make.Checks:
    kind, value, negate = grader["type"], grader.get("value"), grader["negate"]
    which = kind.partition("-")[2]
    if negate and which == "all":
        raise left_out("one missing text is enough, which no check here can say")
    if which and isinstance(value, str):
        (value,) = csv.reader([value], skipinitialspace=True)
    is_any, ignore_case = which == "any", kind.startswith("i")
    return make.literals(value, ignore_case=ignore_case, negate=negate, any_of=is_any)


_TEMPLATES = {"equals": r"\A{}\Z", "starts-with": r"\A{}", "ends-with": r"{}\Z"}


def _matches(grader: make.Given) -> Part:
    if grader["routes"] and grader["type"] == "equals":
        return keys.SHOULD.read(grader.get("value"))
    texts = make.texts_in(grader.get("value"))
    patterns = [_TEMPLATES[grader["type"]].format(re.escape(text)) for text in texts]
    return make.patterns(patterns, negate=grader["negate"])


def _is_json(grader: make.Given) -> make.Checks:
    if grader["negate"]:
        raise left_out("no check here can say that there is none")
    if grader["type"] == "contains-json":
        raise left_out("no check here finds JSON within a text")
    return [JsonSchema(schema=_object(grader.get("value")))]


def _judged(prefix: str, grader: make.Given) -> make.Checks:
    if grader["negate"]:
        raise left_out("a judge is not asked for the opposite")
    return make.judged(grader.get("value"), prefix=prefix)


def _skill_used(grader: make.Given) -> Draft:
    value, negate = grader.get("value"), grader["negate"]
    if isinstance(value, dict):
        negate = negate or value.get("max") == 0
        value = value.get("name")
    if not (choice := skills_in(value, are_right=not negate)):
        raise Flaw("names no skill")
    return Draft(choice=choice) if negate else keys.all_of(value)


def _why_left_out(grader: make.Given) -> str:
    value = grader.get("value")
    if isinstance(value, str) and value.startswith("file://"):
        return f"{value} is not read"
    return "its transform is not applied" if "transform" in grader else ""


_ASSERTIONS = keys.graders(
    "assertions, and their `not-`: of texts, patterns, JSON and `skill-used`; "
    "`llm-rubric`, `g-eval` and `factuality` are for a judge; left out: all others, such as "
    "scripts and costs",
    {
        "contains icontains contains-any icontains-any contains-all icontains-all": _contains,
        "regex": lambda each: make.patterns(each.get("value"), negate=each["negate"]),
        "equals starts-with ends-with": _matches,
        "is-json contains-json": _is_json,
        "llm-rubric g-eval model-graded-closedqa": partial(_judged, make.RUBRIC),
        "factuality model-graded-factuality": partial(
            _judged, "The answer agrees with this reference: "
        ),
        "skill-used": _skill_used,
    },
    opposite="not-",
    unless=_why_left_out,
)


_SCORED = ("threshold", "assertScoringFunction")
"""Keys that let a test pass of which a check fails."""


def _unrendered(value: object) -> Draft:
    raise Flaw(str(value), Weight.LACKS)


def _options(value: object) -> Draft:
    harmless = {"provider", "rubricPrompt", "runSerially"}
    if unknown := next((key for key in _object(value) if key not in harmless), None):
        raise Flaw(f"{unknown} is not applied", Weight.LACKS)
    return Draft()


def _find(value: Any) -> list[Entry]:
    """Return the tests of a configuration or of a file of tests, one for each prompt."""
    config = value if isinstance(value, dict) else {}
    elsewhere = [
        Entry((key,), {"prompt": key, key: True})
        for key in ("tests", "scenarios")
        if any(key == "scenarios" or isinstance(each, str) for each in as_list(config.get(key)))
    ]
    return elsewhere + [
        Entry(path, case)
        for path, test, _ in entries_at(value, *(["tests"] if config else []))
        if isinstance(test, dict) and ("vars" in test or "assert" in test)
        for case in _written_out(test, config)
    ]


def _written_out(test: Mapping[str, Any], config: Mapping[str, Any]) -> Iterator[Any]:
    """Yield a test once for each choice among the lists in its variables, without templates."""
    default, metadata = _object(config.get("defaultTest")), _object(test.get("metadata"))
    given = {**_object(default.get("vars")), **_object(test.get("vars"))}
    lists = [value if isinstance(value, list) else [value] for value in given.values()]
    is_one = all(len(values) == 1 for values in lists)
    assertions = [*as_list(test.get("assert")), *as_list(default.get("assert"))]
    counted = [each for each in assertions if _object(each).get("weight") != 0]
    scored = [key for key in _SCORED if len(counted) > 1 and (key in test or key in default)]
    options = {**_object(default.get("options")), **_object(test.get("options"))}
    routes = metadata.get("type") in {"trigger", "routing"}
    elsewhere = {"vars", "metadata", *_SCORED, *(() if is_one else ("description", "id"))}
    own = {key: part for key, part in test.items() if key not in elsewhere}
    for values in product(*lists):
        written = dict(zip(given, values, strict=True))
        chosen = _rendered(written, written)
        case = {
            **own,
            **({"skill": metadata["skill"]} if "skill" in metadata else {}),
            "assert": [
                {**each, "routes": routes} if isinstance(each, dict) else each
                for each in _rendered(counted, chosen)
            ],
            **dict.fromkeys(scored, True),
            **({"options": options} if options else {}),
        }
        try:
            yield case | {"prompt": _prompt(config, metadata, chosen)}
        except ValueError as error:
            yield case | {"prompt": str(test.get("vars") or ""), "vars": str(error)}


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _prompt(
    config: Mapping[str, Any], metadata: Mapping[str, Any], chosen: Mapping[str, Any]
) -> str:
    """Return the question: the only prompt of the file with its variables, or a variable.

    Raises:
        ValueError: There is no such question, or it lacks a variable.
    """
    if "conversationId" in metadata:
        raise ValueError("it is a part of a conversation, and each question is asked alone")
    prompts = as_list(config.get("prompts") or [])
    if len(prompts) > 1:
        raise ValueError(f"{len(prompts)} prompts: keep the one that has no skill")
    if prompts and isinstance(prompts[0], str) and not prompts[0].startswith("file://"):
        rendered = _text_of(prompts[0], chosen)
    else:
        rendered = next((str(chosen[key]) for key in (*PROMPTS, "user_input") if key in chosen), "")
    if not rendered.strip() or "file://" in rendered:
        raise ValueError("the prompt is in another file, which is not read: write it here")
    return rendered


def _rendered(value: Any, chosen: Mapping[str, Any]) -> Any:
    if isinstance(value, dict):
        return {key: _rendered(part, chosen) for key, part in value.items()}
    if isinstance(value, list):
        return [_rendered(part, chosen) for part in value]
    if isinstance(value, str) and "{{" in value:
        with suppress(ValueError):
            return _text_of(value, chosen)
    return value


def _text_of(template: str, chosen: Mapping[str, Any]) -> str:
    """Return the text that a template gives.

    Raises:
        ValueError: It is no template, or lacks a variable.
    """
    # Imported here: most projects have no such file.
    from jinja2 import StrictUndefined, TemplateError
    from jinja2.sandbox import SandboxedEnvironment

    environment = SandboxedEnvironment(
        undefined=StrictUndefined,
        autoescape=False,
        # As JavaScript writes it.
        finalize=lambda value: str(value).lower() if isinstance(value, bool) else value,
    )
    try:
        return environment.from_string(template).render(chosen)
    except TemplateError as error:
        raise ValueError(str(error)) from None


ADAPTER = Adapter(
    tool="promptfoo",
    about="https://www.promptfoo.dev/docs/configuration/, version 0.123",
    places=("*promptfoo*.{yaml,yml,json}", "*{tests,cases,routing}*.{yaml,yml}"),
    find=_find,
    keys={
        "description|id": keys.NAME,
        "skill": keys.SKILL,
        "prompt": keys.PROMPT,
        "vars": Reader("values for the prompt", _unrendered),
        "assert": _ASSERTIONS,
        "options": Reader("what is done to prompt or answer", _options),
        "|".join(_SCORED): keys.unmeasured("all checks have to pass here", Weight.LACKS),
        "tests|scenarios": keys.unmeasured(
            "in another file or form, which is not read: write them as a list of `tests`",
            Weight.LACKS,
        ),
    },
)
