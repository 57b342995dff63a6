"""Microsoft's Vally: ``eval.yaml`` with ``stimuli`` and their graders.

Read: https://microsoft.github.io/vally/reference/eval-spec/ and the pages of its graders, version
0.13 (August 2026), and the suites of hve-core, GitHub-Copilot-for-Azure and
azure-functions-skills.
"""

from collections.abc import Mapping
from functools import partial
from shlex import join
from typing import Any

from pytest_upskill.cases.adapters import keys, make
from pytest_upskill.cases.adapters.adapter import Adapter, Entry, Reader, entries_at
from pytest_upskill.cases.adapters.draft import Draft, Weight, an_object, as_list, left_out
from pytest_upskill.cases.skill import plain_name
from pytest_upskill.checks.files import RunsCommand


def _of_text(grader: make.Given) -> make.Checks:
    kind = grader["type"]
    negate = ("-not-" in kind) != bool(grader["negate"])
    if kind.endswith("matches"):
        found = make.patterns(grader.get("pattern"), negate=negate)
    else:
        text = grader.get("substring", grader.get("content"))
        found = make.literals(text, ignore_case=not grader.get("case_sensitive"), negate=negate)
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
        "skill-invocation": {"required": keys.ALSO_EXPECTED, "disallowed": keys.FORBIDDEN},
        # Of the agent's session: trouble in one is missing data here.
        "completed exit-success error-count": None,
    },
)


def _tags(value: object) -> Draft:
    given = value if isinstance(value, dict) else {}
    return Draft(tags=tuple(str(given[e]) for e in ("category", "area", "tier") if e in given))


def _find(value: Any) -> list[Entry]:
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


ADAPTER = Adapter(
    tool="Vally",
    about="https://microsoft.github.io/vally/reference/eval-spec/, version 0.13",
    places=("*eval*.{yaml,yml}", "stimuli/*.{yaml,yml}"),
    find=_find,
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
