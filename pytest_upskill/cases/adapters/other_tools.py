"""Tools with small formats: caliper, tessl, Vally and waza.

- caliper: ``*.eval.yaml`` with ``tasks``. Read: ``caliper/schema/spec.py`` of caliper-eval 0.21.0.
- tessl: a folder for each scenario, with ``task.md`` and ``criteria.json``. Read:
  https://docs.tessl.io/improving-your-skills/evaluate-skill-quality-using-scenarios (October 2026),
  and the scenarios of tiles in its registry.
- Vally, of Microsoft: ``eval.yaml`` with ``stimuli`` and their graders. Read:
  https://microsoft.github.io/vally/reference/eval-spec/ and the pages of its graders, version 0.13
  (August 2026), and the suites of hve-core, GitHub-Copilot-for-Azure and azure-functions-skills.
- waza, of Microsoft: ``tasks/*.yaml``, with what the ``eval.yaml`` beside their folder adds. Read:
  the schemas and graders of https://github.com/microsoft/waza at 091a1f9e (March 2026),
  https://microsoft.github.io/waza/guides/graders of version 0.40 (November 2026), and the suites of
  dskst/ddd-skills, mizchi/skills, akunzai/agent-skills and AzureCosmosDB/cosmosdb-agent-kit.
"""

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from shlex import join
from typing import Any

from pytest_upskill.cases.adapters import keys, make
from pytest_upskill.cases.adapters.adapter import Adapter, Entry, Keys, Reader, entries_at
from pytest_upskill.cases.adapters.draft import Draft, Flaw, Weight, an_object, as_list, left_out
from pytest_upskill.cases.skill import plain_name
from pytest_upskill.cases.source.formats import object_in
from pytest_upskill.checks.files import RunsCommand
from pytest_upskill.checks.text import NotRegex, Regex


def _tasks(value: Any) -> list[Entry]:
    """Return the tasks, each with the skill of the file if it has only one."""
    if not isinstance(value, dict) or not {"skills", "tasks"} <= value.keys():
        return []
    names = [plain_name(path) for path in as_list(value["skills"]) if isinstance(path, str)]
    own = {"skill": names[0]} if len(names) == 1 and names[0] else {}
    return [
        Entry(path, {**own, **task} if isinstance(task, dict) else task)
        for path, task, _ in entries_at(value, "tasks")
    ]


CALIPER = Adapter(
    tool="caliper",
    about="caliper-eval 0.21.0",
    places=("*.eval.{yaml,yml}",),
    find=_tasks,
    keys={
        "id|name": keys.NAME,
        "prompt": keys.PROMPT,
        "skill": keys.SKILL,
        "expect": make.statements("a statement for a judge", "The answer fits this: "),
        "assert": keys.unmeasured("its Python code is not run", Weight.LEFT_OUT),
        "activates": Reader("the skill to choose; null for none", keys.all_of, reads_empty=True),
        "setup": Reader("commands before an agent starts", keys.commands_in),
        "history": keys.unmeasured("a single answer continues no session"),
    },
)


def _criterion(value: Any) -> make.Checks:
    given = an_object(value)
    return make.judged(given.get("description") or given.get("name"))


def _with_criteria(path: Path, _: Any) -> Mapping[str, Any]:
    """Return the criteria beside a task."""
    criteria = object_in(path.with_name("criteria.json"))
    return {"name": path.parent.name, "checklist": criteria.get("checklist")} if criteria else {}


TESSL = Adapter(
    tool="tessl",
    about="https://docs.tessl.io/improving-your-skills/evaluate-skill-quality-using-scenarios",
    places=("evals/*/task*.md",),
    find=lambda value: [Entry((), value)] if isinstance(value, dict) else [],
    keys={
        "name": keys.NAME,
        "body": keys.PROMPT,
        "checklist": Reader("statements for a judge", _criterion, as_list),
    },
    is_folder=True,
    beside=_with_criteria,
)


def _of_text(grader: make.Given) -> make.Checks:
    kind = grader["type"]
    negate = ("-not-" in kind) != make.is_on(grader["negate"])
    if kind.endswith("matches"):
        found = make.patterns(grader.get("pattern"), negate=negate)
    else:
        text = grader.get("substring", grader.get("content"))
        ignores_case = not make.is_on(grader.get("case_sensitive"))
        found = make.literals(text, ignore_case=ignores_case, negate=negate)
    return make.in_file(grader.get("path"), found) if kind.startswith("file-") else found


def _command(grader: make.Given) -> make.Checks:
    command = join(map(str, (grader.get("command"), *as_list(grader.get("args")))))
    code = grader.get("expected_exit_code")
    return [RunsCommand(command=command, exit_code=code if isinstance(code, int) else 0)]


def _call(spec: object, **times: int) -> make.Checks:
    given = an_object(spec)
    if {"args", "path"} & given.keys():
        raise left_out("an argument is not searched for by its name")
    names = make.tools_named(given["name"]) if "name" in given else make.SHELL
    return [make.called(names, str(given.get("command", "")), **times)]


_GRADERS = keys.graders(
    "graders of the answer, files, commands and calls; `prompt` is for a judge, "
    "`skill-invocation` a trigger; left out: budgets, comparisons, transcripts",
    {
        "output-contains output-not-contains output-matches output-not-matches"
        " file-contains file-not-contains file-matches file-not-matches": _of_text,
        "file-exists": lambda grader: make.file_exists(grader.get("path")),
        "file-not-exists": lambda grader: make.files_gone(grader.get("path")),
        # Without a rubric of its own, it has that of the stimulus.
        "prompt": {"prompt": make.statements("", make.RUBRIC)},
        "run-command": _command,
        "shell-command-invoked tool-calls": {
            "required": Reader("", _call, as_list),
            "disallowed": Reader("", partial(_call, least=0, most=0), as_list),
        },
        "skill-invocation": {"required": keys.ALL_EXPECTED, "disallowed": keys.FORBIDDEN},
        # Of the agent's session: trouble in one is missing data here.
        "completed exit-success error-count": None,
    },
)


def _tags(value: object) -> Draft:
    given = value if isinstance(value, dict) else {}
    return Draft(tags=tuple(str(given[e]) for e in ("category", "area", "tier") if e in given))


def _stimuli(value: Any) -> list[Entry]:
    """Return the stimuli, each with the environment and the tags of the whole file."""
    return [
        Entry(path, _with_suite(stimulus, value) if isinstance(stimulus, dict) else stimulus)
        for path, stimulus, _ in entries_at(value, "stimuli")
    ]


def _with_suite(stimulus: Mapping[str, Any], suite: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a stimulus with what its file says for all, and with the name of its skill."""
    shared = {
        key: {**suite[key], **given}
        for key in ("environment", "tags")
        if isinstance(suite.get(key), dict) and isinstance(given := stimulus.get(key) or {}, dict)
    }
    case = {**stimulus, **shared}
    tags, environment = case.get("tags"), case.get("environment")
    tested = tags.get("skill") if isinstance(tags, dict) else None
    paths = as_list(environment.get("skills")) if isinstance(environment, dict) else []
    names = dict.fromkeys(plain_name(str(path)) for path in paths)
    # Of several skills in its environment, its tag names the tested one.
    name = str(tested) if tested else next(iter(names)) if len(names) == 1 else ""
    return case | ({"tested": name} if name else {})


VALLY = Adapter(
    tool="Vally",
    about="https://microsoft.github.io/vally/reference/eval-spec/, version 0.13",
    places=("*eval*.{yaml,yml}", "stimuli/*.{yaml,yml}"),
    find=_stimuli,
    keys={
        "name": keys.NAME,
        "prompt": keys.PROMPT,
        "turns": keys.FURTHER_TURNS,
        "graders": _GRADERS,
        "rubric": make.statements("statements for a judge"),
        "tags": Reader("`skill`, and words for `-k`", _tags),
        "environment": {
            "files": keys.FILES,
            "commands": Reader("commands before an agent starts", keys.commands_in),
            "mcp_servers": keys.unmeasured("a model is not given them", Weight.LIMIT),
        },
        # As the graders of skills and calls; version 0.16 has no more expectations there.
        "constraints": {
            "expect_skills": keys.ALSO_EXPECTED,
            "reject_skills": keys.FORBIDDEN,
            "expect_tools": keys.CALLED_TOOLS,
            "reject_tools": keys.REJECTED_TOOLS,
        },
        "tested": Reader("", lambda name: Draft(skills=(name,))),
    },
)


_LENGTH = re.compile(r"\s*len\(output(?:\.strip\(\))?\) ([<>]) (\d+)\s*")


def _lengths(grader: make.Given) -> make.Checks:
    """Yield the checks of assertions that are all about the length of the answer."""
    found = [_LENGTH.fullmatch(str(each)) for each in as_list(grader.get("assertions"))]
    if not found or not all(found):
        raise left_out("its expressions are not evaluated")
    for each in filter(None, found):
        size = int(each[2])
        if each[1] == ">" and not size:
            raise Flaw("any answer is longer than nothing", Weight.LIMIT)
        if each[1] == ">":
            yield Regex(pattern=rf"(?s)\A.{{{size + 1}}}")
        else:
            yield NotRegex(pattern=rf"(?s)\A.{{{size}}}")


def _content_of_waza(value: object) -> make.Checks:
    given = an_object(value)
    for key, negate in (("must_match", False), ("must_not_match", True)):
        if given.get(key):
            yield from make.in_file(given.get("path"), make.patterns(given[key], negate=negate))


_no_literals = partial(make.literals, negate=True)
_any_literal = partial(make.literals, any_of=True)
_BEHAVIOR: Keys = {
    "required_tools": keys.CALLED_TOOLS,
    "forbidden_tools": keys.REJECTED_TOOLS,
    "max_tool_calls max_tokens max_duration_ms max_response_time_ms max_iterations max_turns": (
        keys.unmeasured("a budget is not a check of the answer", Weight.LIMIT)
    ),
}

GRADERS = keys.graders(
    "`text`, `keyword`, `file`, `behavior`, `skill_invocation`, `prompt`, and `code` about "
    "lengths; left out: other `code`, `program`, `tool_constraint`, budgets",
    {
        "text regex keyword": {
            "contains keywords": Reader("", make.literals),
            "contains_cs": Reader("", partial(make.literals, ignore_case=False)),
            "not_contains": Reader("", _no_literals),
            "not_contains_cs": Reader("", partial(make.literals, ignore_case=False, negate=True)),
            "regex_match must_match pattern": Reader("", make.patterns),
            "regex_not_match must_not_match": Reader("", partial(make.patterns, negate=True)),
        },
        "code": _lengths,
        "prompt llm llm_rubric": {"prompt|rubric": make.statements("", make.RUBRIC)},
        "file": {
            "must_exist": keys.LEFT_FILES,
            "must_not_exist": Reader("", make.files_gone),
            "content_patterns": Reader("", _content_of_waza, as_list),
        },
        "trigger": None,  # of the words of the prompt, not of an agent's choice
        "skill_invocation": {"required_skills": keys.ALL_EXPECTED},
        "behavior": _BEHAVIOR,
    },
)


def _tasks_of_waza(value: Any) -> list[Entry]:
    is_task = isinstance(value, dict) and isinstance(value.get("inputs"), dict)
    return [Entry((), value)] if is_task else []


def _with_eval(path: Path, task: Any) -> Mapping[str, Any]:
    """Return the suite of a task: the ``eval.yaml`` beside its folder.

    waza keeps one result for each name, so a grader of the task replaces the suite's of its name.
    """
    suite = object_in(path.parent.parent / "eval.yaml")
    graders = as_list(task.get("graders")) if isinstance(task, dict) else []
    own = {_name_of(grader) for grader in graders} - {""}
    left = [each for each in as_list(suite.get("graders")) if _name_of(each) not in own]
    return {"suite": {**suite, "graders": left}}


def _name_of(grader: object) -> str:
    return str(grader.get("name") or "") if isinstance(grader, dict) else ""


_NOT_GIVEN = keys.unmeasured("an agent is not given it", Weight.LACKS)

WAZA = Adapter(
    tool="waza",
    about="https://github.com/microsoft/waza, version 0.40",
    places=("{tasks,holdouts}/**/*.{yaml,yml}",),
    find=_tasks_of_waza,
    keys={
        "id|name": keys.NAME,
        "inputs": {
            "prompt": keys.PROMPT,
            "prompt_file": keys.unmeasured("write its text as 'prompt'", Weight.LACKS),
            "follow_up_prompts responder": keys.FURTHER_TURNS,
            "context": {"fixture": _NOT_GIVEN},
            "repos": _NOT_GIVEN,
            "files": Reader(
                "files of `fixtures`, or with their text",
                lambda value: Draft(files=keys.files_in(value, folder="fixtures/")),
            ),
        },
        "expected": {
            "should_trigger": keys.SHOULD,
            "output_contains": Reader("texts that must be in the answer", make.literals),
            "output_not_contains": Reader("texts that must not", _no_literals),
            "output_contains_any": Reader("texts of which one must", _any_literal),
            "behavior": _BEHAVIOR,
        },
        "graders": GRADERS,
        "suite": {
            "skill": keys.SKILL,
            "graders": GRADERS,
            "hooks": keys.unmeasured("its commands are not run", Weight.LIMIT),
            "mcp_mocks command_mocks": keys.unmeasured("a model is not given them", Weight.LIMIT),
        },
        "enabled": keys.ENABLED,
        "tags": keys.TAGS,
    },
    is_single=True,
    beside=_with_eval,
)
