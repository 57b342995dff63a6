"""Tools with one case per file: the files of a suite are measured as one."""

from __future__ import annotations

import json
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path

import pytest

from pytest_upskill.cases.adapters import other_tools, plugin_eval
from pytest_upskill.cases.adapters.adapter import Adapter
from pytest_upskill.commands.command import load_skill
from pytest_upskill.commands.main import main
from tests.conftest import Run
from tests.git_repository import commit_all, git
from tests.loopback import Loopback, Received, Reply
from tests.scripted_model import Script

OK, FAILED = pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED
TEXT = "---\nname: tea\ndescription: About tea.\n---\n\n# tea\n\n"
FACTS = {"pot": "3 litres", "lid": "green", "cup": "white", "tray": "oak", "spoon": "silver"}
BODY = "".join(f"The tea {thing} is {what}.\n\n" for thing, what in FACTS.items())
OFFLINE = "--upskill-models=offline"
UPDATE, COMPARE = "--upskill-baseline-update", "--upskill-compare=baseline"
BASELINE = Path(".upskill/baselines/skills/tea/tasks/offline.json")

Write = Callable[..., None]


def task(name: str, what: str, asked: str = "") -> str:
    question = asked or f"What is the tea {name}?"
    return (
        f"id: {name}\ninputs: {{prompt: '{question}'}}\nexpected: {{output_contains: [{what}]}}\n"
    )


@pytest.fixture
def write(pytester: pytest.Pytester) -> Write:
    def write(files: dict[str, str]) -> None:
        for name, text in files.items():
            path = pytester.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")

    return write


@pytest.fixture
def tea(write: Write) -> None:
    """A skill with three tasks of waza."""
    write({"skills/tea/SKILL.md": TEXT + BODY})
    write({f"skills/tea/tasks/{name}.yaml": task(name, FACTS[name]) for name in [*FACTS][:3]})


def grader(what: str) -> str:
    return f"---\ntype: regex\npattern: {what}\n---\n"


@pytest.mark.parametrize(
    ("suite", "files"),
    [
        ("skills/tea/tasks", {f"{e}.yaml": task(e, FACTS[e]) for e in FACTS}),
        ("evals/tea/holdouts", {f"a/{e}.yaml": task(e, FACTS[e]) for e in FACTS}),
        (
            "skills/tea/evals",
            {f"{e}/prompt.md": f"What is the tea {e}?" for e in FACTS}
            | {f"{e}/graders/a.md": grader(FACTS[e]) for e in FACTS},
        ),
    ],
)
def test_the_files_of_a_suite_have_one_gate_and_one_row(
    write: Write, run: Run, suite: str, files: dict[str, str]
) -> None:
    write({"skills/tea/SKILL.md": TEXT + BODY, **{f"{suite}/{e}": files[e] for e in files}})

    result = run(OFFLINE, "-v", "--upskill-json=r.json", ".")

    gates = {line.split()[0] for line in result.outlines if "::gate[" in line}
    assert gates <= {f"{suite}::gate[offline]"}  # workers print the outcome first
    (entry,) = json.loads(Path("r.json").read_text("utf-8"))["entries"]
    assert entry["gate"]["cell"]["path"] == suite
    assert {trial["case"] for trial in entry["gate"]["cell"]["trials"]} == {*FACTS}
    result.stdout.fnmatch_lines([f"*{suite}/*pot*offline-with_skill*", "tea", "*5 of 5 cases*"])


@pytest.mark.needs("git")
def test_a_regression_in_several_files_is_red(
    script: Script, pytester: pytest.Pytester, run: Run
) -> None:
    outcomes = dict.fromkeys(("one", "two", "three"), "----- ----- +++++")
    args = script(**outcomes, four="+++++ ----- +++++", five="+++++ ----- +++++")
    folder = pytester.path / "skills" / "csv"
    (folder / "skill_meta.json").unlink()
    (folder / "tasks").mkdir()
    for name in ("one", "two", "three", "four", "five"):
        (folder / "tasks" / f"{name}.yaml").write_text(task(name, "right", asked=name), "utf-8")
    new = (folder / "SKILL.md").read_text("utf-8")
    (folder / "SKILL.md").write_text(f"{new}\nOLD\n", "utf-8")
    commit_all(pytester.path)
    git(pytester.path, "switch", "--quiet", "--create", "branch")
    (folder / "SKILL.md").write_text(new, "utf-8")
    (folder / "tasks" / "four.yaml").write_text(task("four", "righ", asked="four"), "utf-8")
    (folder / "tasks" / "five.yaml").write_text(task("five", "rig", asked="five"), "utf-8")

    result = run(*args, "--upskill-compare=main", "--upskill-min-pass-rate=0")

    result.assert_outcomes(passed=15, failed=1)
    result.stdout.fnmatch_lines(
        [
            "csv on haiku: the skill became worse than main: one, three, two *",
            "*= skills: *",
            "*cases since main*: changed: five, four: *",
        ]
    )


@pytest.mark.usefixtures("tea")
def test_two_cases_of_one_id_are_two_cases(write: Write, run_once: Run) -> None:
    write({"skills/tea/tasks/more/pot.yaml": task("pot", "litres")})

    result = run_once(OFFLINE, "-v", "skills")

    result.assert_outcomes(passed=9)
    ids = {line.partition("::")[2].partition("[")[0] for line in result.outlines}
    first, second = sorted(each for each in ids if each.startswith("pot"))
    assert first.startswith("pot-")
    assert second.startswith("pot-")
    alone = run_once(OFFLINE, "-v", "skills/tea/tasks/more/pot.yaml")
    assert any(f"::{each}[" in str(alone.stdout) for each in (first, second))


@pytest.mark.usefixtures("tea")
def test_a_suite_is_compared_with_its_baseline(run_once: Run) -> None:
    assert run_once(OFFLINE, UPDATE, "skills").ret == OK
    recorded = json.loads(BASELINE.read_text("utf-8"))
    assert [case["id"] for case in recorded["cases"]] == ["cup", "lid", "pot"]

    assert run_once(OFFLINE, COMPARE, "skills").ret == OK
    Path("skills/tea/tasks/cup.yaml").unlink()
    result = run_once(OFFLINE, COMPARE, "--upskill-fail-on=cases", "skills")

    assert result.ret == FAILED
    result.stdout.fnmatch_lines(["*since the baseline: cup*"])


@pytest.mark.usefixtures("tea")
def test_a_part_of_a_suite_decides_nothing_and_leaves_the_baseline(
    write: Write, run_once: Run
) -> None:
    run_once(OFFLINE, UPDATE, "skills")
    before = BASELINE.read_text("utf-8")
    write({"skills/tea/SKILL.md": TEXT + BODY.replace("white", "black")})

    result = run_once(OFFLINE, UPDATE, "skills/tea/tasks/pot.yaml")

    assert BASELINE.read_text("utf-8") == before
    result.stdout.fnmatch_lines(
        ["*only 2 of 6 tests ran*", "no baseline written of tea on offline: 2 of 6 trials ran*"]
    )


@pytest.mark.usefixtures("tea")
def test_a_file_that_cannot_be_read_is_missing_in_its_suite(write: Write, run_once: Run) -> None:
    write({"skills/tea/tasks/bad.yaml": "inputs: {prompt: [", "skills/tea/tasks/note.yaml": "a: 1"})

    result = run_once(OFFLINE, UPDATE, "skills")

    assert not BASELINE.exists()
    result.stdout.fnmatch_lines(["*bad.yaml*", "no baseline written of tea on offline: 6 of 7 *"])


@pytest.mark.usefixtures("tea")
def test_files_that_pytest_ignores_are_not_waited_for(write: Write, run_once: Run) -> None:
    write({"skills/tea/tasks/.drafts/a.yaml": task("tray", "oak")})

    result = run_once(OFFLINE, "--ignore=skills/tea/tasks/pot.yaml", "skills")

    result.assert_outcomes(passed=5)


def test_several_skills_of_a_suite_have_a_gate_each(write: Write, run_once: Run) -> None:
    for skill in ("tea", "pots"):
        write({
            f"skills/{skill}/SKILL.md": TEXT.replace("tea", skill) + BODY,
            f"evals/{skill}/a/prompt.md": "What is the tea pot?",
            f"evals/{skill}/a/graders/a.md": grader("3 litres"),
            f"evals/{skill}/b/prompt.md": "What is the tea lid?",
            f"evals/{skill}/b/graders/a.md": grader("green"),
        })  # fmt: skip

    result = run_once(OFFLINE, "-v", UPDATE, ".")

    result.stdout.fnmatch_lines(["evals::pots::gate?offline? *", "evals::tea::gate?offline? *"])
    result.assert_outcomes(passed=10)


@pytest.mark.needs("git")
def test_a_change_in_one_file_runs_the_whole_suite(
    write: Write, run_once: Run, pytester: pytest.Pytester
) -> None:
    write({"skills/tea/SKILL.md": TEXT + BODY})
    for name, what in FACTS.items():
        write({f"evals/tea/tasks/{name}/a.yaml": task(name, what)})
    commit_all(pytester.path)
    git(pytester.path, "switch", "--quiet", "--create", "branch")
    write({"evals/tea/tasks/pot/a.yaml": task("pot", "litres")})
    commit_all(pytester.path)

    result = run_once(OFFLINE, "--upskill-changed-since=main", ".")

    result.assert_outcomes(passed=11)


@pytest.mark.needs("git")
@pytest.mark.usefixtures("tea")
@pytest.mark.parametrize(
    ("moved", "told"),
    [
        ("skills/tea", "skills/tea/tasks/cup.yaml was deleted or moved since main: see that no *"),
        ("skills/more/tea", "tea on offline: cases since main *: removed: cup*"),
    ],
)
def test_a_file_that_was_deleted_is_told_once(
    pytester: pytest.Pytester, run_once: Run, moved: str, told: str
) -> None:
    commit_all(pytester.path)
    git(pytester.path, "switch", "--quiet", "--create", "branch")
    Path(moved).parent.mkdir(exist_ok=True)
    Path("skills/tea").rename(moved)
    Path(moved, "tasks", "cup.yaml").unlink()
    commit_all(pytester.path)

    result = run_once(OFFLINE, "--upskill-compare=main", "skills")

    (line,) = (line for line in result.outlines if "cup" in line)
    assert fnmatch(line, f"*{told}")


@pytest.mark.usefixtures("tea")
def test_the_labels_of_a_suite_are_in_its_folder(
    write: Write, without_sockets: Loopback, run_once: Run
) -> None:
    kind = "graders: [{type: prompt, name: kind, config: {prompt: The answer is kind.}}]\n"
    for name in [*FACTS][:3]:
        write({f"skills/tea/tasks/{name}.yaml": task(name, FACTS[name]) + kind})

    def answer(received: Received) -> Reply:
        if received.body["model"] != "judge":
            return Reply(text="I have to say: 3 litres, green, white.")
        entry = {"statement": 1, "quote": "I have to say", "reason": "so it is", "holds": True}
        return Reply(text=json.dumps({"verdicts": [entry]}))

    without_sockets.answer = answer
    url = without_sockets.openai_url
    judged = (f"--upskill-models=m=model@{url}", f"--upskill-judge=j=judge@{url}", "skills")

    run_once(*judged, "--upskill-json=r.json")
    main(["judge", "draw", "r.json"])
    run_once(*judged, "--upskill-json=r.json")

    labels = json.loads(Path("skills/tea/tasks/judge_labels.json").read_text("utf-8"))
    assert labels["case_file"] == "tasks"
    (entry,) = json.loads(Path("r.json").read_text("utf-8"))["entries"]
    assert entry["gate"]["cell"]["labels"] is not None


@pytest.mark.usefixtures("tea")
def test_a_command_takes_all_cases_of_a_suite(capsys: pytest.CaptureFixture[str]) -> None:
    main(["list", "skills"])

    assert "3 cases in tasks: 3 by code" in capsys.readouterr().out
    assert len(load_skill(Path("skills/tea").absolute()).cases) == 3


@pytest.mark.parametrize(
    ("adapter", "file", "suite"),
    [
        (other_tools.WAZA, "/tasks/csv/tasks/a/b.yaml", "/tasks/csv/tasks"),
        (other_tools.WAZA, "/csv/checks/b.yaml", None),
        (other_tools.TESSL, "/evals/csv/evals/a/task.md", "/evals/csv/evals"),
        (plugin_eval.ADAPTER, "/csv/evals/a/b/case.yaml", "/csv/evals"),
        (plugin_eval.ADAPTER, "/csv/evals/csv-eval/prompt.md", "/csv/evals"),
        (plugin_eval.ADAPTER, "/evals/a/b/c/csv-eval/prompt.md", "/evals/a/b/c/csv-eval"),
        (other_tools.VALLY, "/csv/stimuli/a.yaml", None),
    ],
)
def test_a_suite_is_the_nearest_folder_that_a_place_begins_with(
    adapter: Adapter, file: str, suite: str | None
) -> None:
    assert adapter.suite_of(Path(file)) == (suite and Path(suite))
