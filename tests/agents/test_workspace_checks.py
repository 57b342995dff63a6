"""Cases with a workspace: their keys, their checks, and where they are skipped."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.cases.load import load_skills
from pytest_upskill.cases.skill import Case, Skill
from pytest_upskill.cases.skill_files import with_files
from pytest_upskill.cases.skill_meta.reader import read_cases
from pytest_upskill.cases.source.document import BadFile
from pytest_upskill.cases.source.files import Unreadable
from pytest_upskill.checks import CheckResult
from pytest_upskill.checks.calls import ToolUse
from pytest_upskill.checks.compile import Compilers
from pytest_upskill.checks.files import FileExists, GitState, Left, Setup, WorkspaceFile, placed
from pytest_upskill.grading.grade import Answer, grade, left_by, sandboxed_of, with_changes
from pytest_upskill.models import AgentRun, AgentTurn, Completion, parse_model
from pytest_upskill.trials.digests import arm_digests
from pytest_upskill.trials.result import TrialResult
from pytest_upskill.trials.trial import plan, request_of
from tests.conftest import Run, WriteSkill
from tests.planning import planned


def read(expected: dict[str, Any], **more: Any) -> Case:
    text = json.dumps([{"id": "c", "input": "Add them.", "expected": expected, **more}])
    ((case,), _) = read_cases(text)
    return case


def problem(expected: dict[str, Any], **more: Any) -> str:
    with pytest.raises(BadFile) as caught:
        read(expected, **more)
    (only,) = caught.value.problems
    return only.at("f").partition(" ")[2]


def graded(
    case: Case, run: AgentRun | None = None, text: str = "Done.", *, judged: bool = False
) -> TrialResult:
    trial, _ = planned(case, model="loop:offline")
    completion = Completion(
        text=text, input_tokens=1, output_tokens=1, agent_run=run or AgentRun(version="1")
    )
    held = (CheckResult(name="judge", passed=True, message="holds"),) if judged else None
    return grade(trial, [Answer(completion=completion, judged=held)])


def left(*files: tuple[str, str], **more: Any) -> AgentRun:
    changed = tuple(WorkspaceFile(name=name, text=text) for name, text in files)
    return AgentRun(version="1", changed=changed, **more)


@pytest.mark.parametrize(
    ("expected", "name", "text"),
    [
        ({"file_exists": "out/*.csv"}, "out/sum.csv", ""),
        ({"file_exists": "**/*.csv"}, "sum.csv", ""),
        ({"file_exists": "**/*.csv"}, "a/b/sum.csv", ""),
        ({"file_contains": {"sum.txt": ["total", "350"]}}, "sum.txt", "TOTAL 350"),
        ({"file": {"sum.json": {"json": {"total": 350}}}}, "sum.json", '{"total": 350}'),
        ({"file": {"sum.txt": {"regex": "^350$", "not_contains": "USD"}}}, "sum.txt", "350"),
    ],
)
def test_a_check_of_a_file_looks_at_what_the_agent_left(
    expected: dict[str, Any], name: str, text: str
) -> None:
    case = read(expected)

    assert graded(case, left((name, text))).passed
    assert not graded(case, text=text).passed


def test_a_failed_check_names_the_file_and_says_what_is_in_it() -> None:
    case = read({"file": {"sum.txt": {"contains": "the answer"}}, "file_exists": "b.txt"})

    (run,) = graded(case, left(("sum.txt", "nothing"))).runs

    assert [check.message for check in run.checks] == [
        "file sum.txt: contains 'the answer': not in the file (7 characters; begins 'nothing')",
        "file_exists b.txt: not in the workspace (sum.txt)",
    ]


def test_the_files_after_a_run_are_those_of_the_case_with_what_the_agent_changed() -> None:
    case = read({"contains": "x"}, workspace={"keep.txt": "1", "drop.txt": "2", "edit.txt": "3"})
    run = replace(left(("edit.txt", "4"), ("new.txt", "5")), deleted=("drop.txt",))

    files = left_by(case, replace(COMPLETION, agent_run=run))

    assert {name: file.text for name, file in files.files.items()} == {
        "keep.txt": "1",
        "edit.txt": "4",
        "new.txt": "5",
    }


COMPLETION = Completion(text="Done.", input_tokens=1, output_tokens=1)


def test_what_an_agent_did_is_reported_and_never_counts() -> None:
    case = read(
        {"contains": "Done", "triggered": True, "read_file": "a.md", "ran_script": "run.py"}
    )
    call = ToolUse(name="bash", input='{"command": "python run.py"}')

    (run,) = graded(case, left(called=True, turns=(AgentTurn(calls=(call,)),))).runs

    assert run.passed
    assert [check.message for check in run.process] == [
        "triggered: the agent chose the skill",
        "read_file a.md: in no request",
        "ran_script run.py: named in a call of bash",
    ]
    assert [check.name for check in run.checks] == ["contains"]


def test_a_run_that_reached_a_limit_is_a_miss_that_names_it() -> None:
    (run,) = graded(read({"contains": "Done"}), left(limit="it needs more than 20 turns")).runs

    assert run.ending == "it needs more than 20 turns"
    assert not run.passed


def test_a_judge_sees_the_answer_and_the_changes_but_not_the_calls() -> None:
    turn = AgentTurn(text="I use it.", calls=(ToolUse(name="Skill", input="x", result="y"),))
    run = replace(left(("a.txt", "new"), turns=(turn,)), deleted=("b",))

    shown = with_changes(replace(COMPLETION, agent_run=run))

    assert shown == 'Done.\n\n<file name="a.txt">\nnew\n</file>\n\n(deleted: b)'


@pytest.mark.parametrize(
    ("expected", "more", "said"),
    [
        (
            {"triggered": True},
            {},
            (
                "[0].expected: decides nothing: only an agent with the skill can trigger it, read "
                "its files and run its scripts; add a check of the result, such as 'file_contains'"
            ),
        ),
        (
            {"file": {"a.txt": {"contians": "x"}}},
            {},
            "[0].expected.file[\"a.txt\"].contians: unknown key (did you mean 'contains'?)",
        ),
        (
            {"file_exists": "../a"},
            {},
            ("[0].expected.file_exists: must be a path in the workspace, such as 'data/in.csv'"),
        ),
        (
            {"contains": "x"},
            {"workspace": {"/etc/passwd": "x"}},
            "[0].workspace: '/etc/passwd' must be a path in the workspace, such as 'data/in.csv'",
        ),
        ({"contains": "x"}, {"max_turns": 0}, "[0].max_turns: must be at least 1, got 0"),
    ],
)
def test_a_mistake_in_the_keys_of_a_workspace_is_reported_with_its_place(
    expected: dict[str, Any], more: dict[str, Any], said: str
) -> None:
    assert problem(expected, **more) == said


def test_code_runs_on_a_copy_of_the_workspace_and_a_forged_module_deceives_nothing() -> None:
    code = "import csv\nassert int(next(csv.reader(open('sum.csv')))[0]) == add(1, 2)"
    case = read({"run": {"language": "python", "code": code, "file": "add.py"}})
    (check,) = sandboxed_of(case)
    good = ("add.py", "from plus import plus\ndef add(a, b): return plus(a, b)")
    other = ("plus.py", "def plus(a, b): return a + b")
    forged = ("csv.py", "def reader(file): return iter([['3']])")
    compilers = Compilers()

    def passes(total: str) -> bool:
        files = left_by(
            case, replace(COMPLETION, agent_run=left(good, other, forged, ("sum.csv", total)))
        )
        return compilers.decide(check, "no code here", files)[0].passed

    try:
        assert passes("3")
        assert not passes("4")
        assert not compilers.decide(check, "```python\ndef add(a, b): return 3\n```")[0].passed
    finally:
        compilers.close()


def test_a_single_request_skips_what_needs_an_agent_and_names_one(
    run_once: Run, write_skill: WriteSkill, model: str
) -> None:
    write_skill({"id": "c", "input": "Sum up.", "expected": {"file_exists": "sum.txt"}})

    result = run_once("skills", f"--upskill-models={model}", "-rs")

    cure = "write an agent before the model, as in loop:MODEL"
    said = f"has files or needs commands ('file_exists'): {cure}"
    assert said in " ".join(result.stdout.str().split())


def test_a_workspace_can_be_a_folder_which_is_not_installed_with_the_skill(tmp_path: Path) -> None:
    (tmp_path / "start/data").mkdir(parents=True)
    (tmp_path / "start/data/in.csv").write_text("1", "utf-8")
    (tmp_path / "start/logo.bin").write_bytes(b"\xff\x00")
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts/sum.py").write_text("print(1)", "utf-8")
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals/evals.json").write_text("[]", "utf-8")
    (tmp_path / "SKILL.md").write_text("---\nname: s\ndescription: d\n---\nx", "utf-8")
    cases = [{"input": "a", "workspace": "start", "expected": {"contains": "x"}}]
    (tmp_path / "skill_meta.json").write_text(json.dumps(cases), "utf-8")

    (skill,) = load_skills(tmp_path / "skill_meta.json")

    assert {file.name: file.content for file in skill.cases[0].workspace} == {
        "data/in.csv": b"1",
        "logo.bin": b"\xff\x00",
    }
    assert [file.name for file in with_files(skill).files] == ["SKILL.md", "scripts/sum.py"]


def test_a_skill_that_is_too_large_to_install_is_refused(tmp_path: Path) -> None:
    (tmp_path / "font.ttf").write_bytes(bytes(15 << 20))
    skill = Skill(
        name="s", text="", case_file=tmp_path / "skill_meta.json", cases=(), folder=tmp_path
    )

    assert [file.name for file in with_files(skill).files] == ["font.ttf"]

    (tmp_path / "model.bin").write_bytes(bytes(2 << 20))
    with pytest.raises(Unreadable, match="cannot be installed for an agent"):
        with_files(skill)


def test_the_arms_of_an_agent_differ_in_the_skill_alone() -> None:
    case = read({"file_exists": "a"}, workspace={"in.csv": "1"}, max_turns=7)
    files = (WorkspaceFile(name="SKILL.md", text="x"),)
    skill = Skill(name="s", text="", case_file=Path("f"), cases=(case,), files=files)
    models = [parse_model("claude-code:haiku")]

    with_skill, without = plan(skill, models, runs=1, min_pass_rate=1, max_tokens=9)
    (same, digest), (alike, none) = (arm_digests(each) for each in (with_skill, without))

    assert same == alike
    assert (bool(digest), none) == (True, "")
    task = request_of(without, 0).task
    assert task is not None
    assert (task.skill, task.max_turns, task.workspace) == ((), 7, case.workspace)


def test_a_pattern_finds_files_in_folders() -> None:
    files = {"a/b.txt": WorkspaceFile(name="a/b.txt", text="")}

    assert FileExists(file="*.txt").check_left(Left(files=files)).passed


def test_a_judge_sees_changed_files_up_to_a_limit_and_that_there_are_more() -> None:
    changed = (
        WorkspaceFile(name="a.txt", text="a" * (64 << 10)),
        WorkspaceFile(name="b.bin", text="aGk=", binary=True),
        WorkspaceFile(name="c.txt", text="c" * 1000),
    )
    run = AgentRun(version="1", changed=changed)
    completion = Completion(text="", input_tokens=1, output_tokens=1, agent_run=run)

    assert with_changes(completion).endswith(
        '<file name="c.txt">\n\n</file>\n\n'
        "(of the changed files, only the first 65,536 characters are shown)"
    )


@pytest.mark.parametrize("size", [3000, 70_000])
def test_a_report_keeps_of_a_judged_answer_what_the_judge_saw(size: int) -> None:
    files = [("a.txt", "a" * size), *((f"{number}.txt", "new") for number in range(60))]
    run = left(*files, deleted=("gone.txt",))
    seen = with_changes(replace(COMPLETION, agent_run=run))

    (judged,) = graded(read({"judge": "It is so."}), run, judged=True).runs
    (other,) = graded(read({"file_exists": "a.txt"}), run).runs

    assert with_changes(judged.completion) == seen
    assert len(with_changes(other.completion)) < len(seen)


@pytest.mark.parametrize(
    ("given", "prompt", "names"),
    [
        (["evals/files/sales.csv"], "Read data/sales.csv.", ["data/sales.csv"]),
        (["evals/files/a.py", "evals/files/b.md"], "Fix `a.py`.", ["a.py", "b.md"]),
        (
            ["files/walker/sim.py", "files/walker/io.py"],
            "See walker/sim.py",
            ["walker/sim.py", "walker/io.py"],
        ),
        (["evals/files/x.py"], "Assess evals/files/x.py.", ["evals/files/x.py"]),
        (["evals/files/x.py"], "Convert /workspace/input/x.py", ["input/x.py"]),
        (
            ["evals/files/src/a.py", "evals/files/src/lib/b.py"],
            "Fix it.",
            ["src/a.py", "src/lib/b.py"],
        ),
        (["data/in.csv"], "Sum it.", ["data/in.csv"]),
        (["a/x.csv", "b/x.csv"], "Compare x.csv with x.csv.", ["a/x.csv", "b/x.csv"]),
        (["../../etc/passwd", "/x"], "Read ../../etc/passwd.", ["etc/passwd", "x"]),
        (["일정.hwpx"], "일정.hwpx 파일에서", ["일정.hwpx"]),
    ],
)
def test_a_file_is_where_the_prompt_says(given: list[str], prompt: str, names: list[str]) -> None:
    files = [WorkspaceFile(name=name, text=name) for name in given]

    found = placed(files, prompt)

    assert [file.name for file in found] == names
    assert [file.text for file in found] == given


def test_files_of_a_question_are_in_the_prompt_of_a_model_and_in_the_workspace_of_an_agent(
    tmp_path: Path,
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/in.csv").write_bytes(b"\xef\xbb\xbf1\r\n")
    (tmp_path / "data/in.xlsx").write_bytes(b"PK\x00\xff")
    (tmp_path / "SKILL.md").write_text("---\nname: s\ndescription: d\n---\nx", "utf-8")
    rest = {"expected": {"contains": "x"}}
    cases = [
        {"input": "Sum in.csv.", "files": ["data/in.csv"], **rest},
        {"input": "Sum it.", "files": "data", "setup": {"commands": "ls"}, "git": True, **rest},
        {"input": "Sum b.", "workspace": {"b": {"source": "data/in.xlsx"}, "c": "1"}, **rest},
    ]
    (tmp_path / "skill_meta.json").write_text(json.dumps(cases), "utf-8")
    (skill,) = load_skills(tmp_path / "skill_meta.json")
    text, binary, copied = skill.cases

    (asked, _), (worked, _) = (
        [*plan(replace(skill, cases=(text,)), [parse_model(name)], runs=1, max_tokens=9)]
        for name in ("offline", "loop:offline")
    )

    assert request_of(asked, 0).user == 'Sum in.csv.\n\n<file name="data/in.csv">\n1\n\n</file>'
    assert request_of(worked, 0).user == "Sum in.csv."
    task = request_of(worked, 0).task
    assert task is not None
    assert {file.name: file.content for file in task.workspace} == {"in.csv": b"\xef\xbb\xbf1\r\n"}
    assert (text.agent_key, binary.agent_key, copied.agent_key) == (None, "setup", "workspace")
    assert binary.setup == Setup(git=True, commands=("ls",))
    assert {file.name: file.content for file in copied.staged} == {"b": b"PK\x00\xff", "c": b"1"}


def test_a_judge_sees_diffs_of_what_was_there_and_the_state_of_git_but_nothing_of_the_setup() -> (
    None
):
    edit = WorkspaceFile(name="a.py", text="@@ -1 +1 @@\n-1\n+2")
    run = replace(
        left(("a.py", "2"), ("new.py", "3"), ("made.txt", "by the setup")),
        edits=(edit,),
        deleted=("gone.txt",),
        of_setup=("made.txt", "gone.txt"),
        git=GitState(branch="main", commits=2, message="fix: a", status=("?? new.py",)),
    )

    shown = with_changes(replace(COMPLETION, agent_run=run))

    assert shown == (
        'Done.\n\n<file name="a.py">\n@@ -1 +1 @@\n-1\n+2\n</file>'
        '\n\n<file name="new.py">\n3\n</file>'
        "\n\n<git>\nbranch main, 2 commits\n?? new.py\nlast commit: fix: a\n</git>"
    )


@pytest.mark.parametrize(
    ("pattern", "name"),
    [("[id]/page.tsx", "[id]/page.tsx"), ("./.env", ".env"), ("data (?).csv", "data (1).csv")],
)
def test_only_stars_and_question_marks_are_wildcards(pattern: str, name: str) -> None:
    files = {name: WorkspaceFile(name=name, text="")}

    assert FileExists(file=pattern).check_left(Left(files=files)).passed
    assert not FileExists(file=pattern).check_left(Left(files={"i/page.tsx": files[name]})).passed


def test_settings_of_git_that_a_case_stages_are_no_file_twice() -> None:
    case = read({"command": "cat .git/config"}, workspace={".git/config": "[core]\n", "a": "1"})
    (check,) = sandboxed_of(case)
    run = replace(left(), repository=case.workspace[:1])
    compilers = Compilers()

    try:
        results = compilers.decide(check, "", left_by(case, replace(COMPLETION, agent_run=run)))
    finally:
        compilers.close()

    assert results[0].passed


def test_the_names_of_staged_files_are_those_that_people_write() -> None:
    status = ('A  "data (1).csv"', "M  a.py", "?? b.py", " M c.py", 'R  d.py -> "e \\"f\\".py"')

    state = GitState(branch="main", commits=1, message="x", status=status)

    assert state.staged == ["data (1).csv", "a.py", 'e "f".py']
