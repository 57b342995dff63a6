"""No model sees what holds answers, and no case gives a model the skill itself."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_upskill import CASE_FILE, LABELS_FILE
from pytest_upskill.cases.adapters.adapter import is_at, pattern_of
from pytest_upskill.cases.adapters.registry import ADAPTERS
from pytest_upskill.cases.catalogue import Catalogues
from pytest_upskill.cases.discovery import CaseDiscovery
from pytest_upskill.cases.history import with_history
from pytest_upskill.cases.load import load_skills
from pytest_upskill.cases.skill import Skill
from pytest_upskill.cases.skill_files import with_files
from pytest_upskill.checks.extensions import NO_EXTENSIONS
from pytest_upskill.checks.files import is_safe_name
from pytest_upskill.models import parse_model
from pytest_upskill.project.branch_point import BranchPoint
from pytest_upskill.trials.trial import plan, request_of
from tests.conftest import Run
from tests.evals import given as given_files
from tests.git_repository import commit_all
from tests.loopback import Loopback

ANSWER = "The answer is fourty-two."
LISTED = ("quiz.json", "checks/*.yaml")
FRONT = "---\nname: csv\ndescription: Reads CSV.\n---\n\n# CSV\n"

SHAPES: tuple[Any, ...] = (
    [{"prompt": "What?", "assertions": [ANSWER]}],
    {"evals": [{"query": "What?", "expected_output": ANSWER}]},
    {"tests": [{"input": "What?", "expected": {"contains": ANSWER}}]},
    {"any_list": [{"question": "What?", "must_contain": [ANSWER]}]},
    {"task": "What?", "ground_truth": ANSWER},
    {"prompt": {"query": "What?", "rubric": [ANSWER]}},
    {"should_trigger": [ANSWER], "should_not_trigger": ["Sing"]},
    {"csv": {"positive": [ANSWER], "negative": ["Sing"]}},
    [{"query": ANSWER, "should_trigger": False}],
    [{"query": ANSWER, "expected_skill": None}],
    [{"query": ANSWER, "type": "should_trigger"}],
)
"""Documents from which cases are read, each with its answer or its query."""
WRITERS: Mapping[str, Callable[[Any], str]] = {
    ".json": json.dumps,
    ".jsonl": lambda value: "\n".join(
        map(json.dumps, value if isinstance(value, list) else SHAPES[0])
    ),
    ".yaml": yaml.safe_dump,
    ".yml": yaml.safe_dump,
}
PLACES = (
    *("", "references/", "scripts/", "assets/deep/", "modes/fast/", "sub/skill/"),
    *("evals/", "eval/", "evaluations/", "tests/cases/", "benchmark/", "references/evals/"),
)
NAMES_OF_PLACES = pattern_of(
    tuple(place.rpartition("/")[2] for adapter in ADAPTERS for place in adapter.places)
)
POSSIBLE_NAMES = st.from_regex(
    re.compile(NAMES_OF_PLACES.pattern, re.IGNORECASE | re.ASCII), fullmatch=True
).filter(
    lambda name: (
        "/" not in name
        and len(name) < 100
        and is_safe_name(name)
        and Path(name).suffix.lower() in WRITERS
    )
)
ANY_NAMES = st.sampled_from([f"{stem}{end}" for stem in ("a", "Q-1") for end in WRITERS])
CERTAIN_NAMES = st.sampled_from([CASE_FILE, LABELS_FILE, *LISTED[:1]])


def write(folder: Path, name: str, content: str) -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content, "utf-8")
    return file


def load(folder: Path, case_file: str = "skill_meta.json") -> Skill:
    (skill,) = load_skills(folder / case_file, discovery=CaseDiscovery(patterns=LISTED))
    return skill


def seen(skill: Skill) -> str:
    """Return all that a model or an agent is sent about a skill's cases, in any arm."""
    models = [parse_model("haiku"), parse_model("loop:haiku")]
    trials = plan(with_files(skill), models, runs=1, min_pass_rate=1, max_tokens=9)
    return "\n".join(str(request_of(trial, 0)) for trial in trials)


def with_case(folder: Path, body: str = "", **case: Any) -> Path:
    """Write a skill with one case, which asks for nothing that is tested here."""
    write(folder, "SKILL.md", FRONT + body)
    own = [{"input": "Hello", "expected": {"contains": "hi"}, **case}]
    write(folder, "skill_meta.json", json.dumps(own))
    return folder


@settings(max_examples=80, deadline=None)
@given(CERTAIN_NAMES | POSSIBLE_NAMES | ANY_NAMES, st.sampled_from(PLACES), st.sampled_from(SHAPES))
def test_what_is_read_as_cases_is_neither_shown_nor_installed(
    name: str, place: str, shape: Any
) -> None:
    suffix = Path(name).suffix
    content = WRITERS[suffix.lower()](shape)
    with TemporaryDirectory() as temporary:
        folder = with_case(Path(temporary, "csv"), f"See `{place}{name}`, [it](<{place}{name}>).\n")
        if place + name not in {CASE_FILE, LABELS_FILE}:  # which are read along with the skill
            file = write(folder, place + name, content)
            assert ANSWER not in content or ANSWER not in seen(load(folder)), file
            assert [each.name for each in with_files(load(folder)).files] == ["SKILL.md"]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_listed_name_hides_a_file_in_any_letter_case(tmp_path: Path, shape: Any) -> None:
    folder = with_case(tmp_path / "csv", "Read Checks/A.yaml and Quiz.JSON and EVALS/notes.md.")
    for name in ("Checks/A.yaml", "Quiz.JSON", "EVALS/notes.md"):
        write(folder, name, f"{json.dumps(shape)}\n# {ANSWER}")

    assert ANSWER not in seen(load(folder))


@pytest.mark.parametrize("ending", [".bak", "~", ".orig", ".old.txt", ".2.TMP"])
@pytest.mark.parametrize("name", ["skill_meta.json", "references/Notes.YAML"])
def test_a_copy_of_a_case_file_is_hidden_too(tmp_path: Path, name: str, ending: str) -> None:
    folder = with_case(tmp_path / "csv", f"See `{name}{ending}`, [it](<{name}{ending}>).\n")
    write(folder, f"{name}{ending}", json.dumps(SHAPES[0]))

    assert ANSWER not in seen(load(folder))
    assert [each.name for each in with_files(load(folder)).files] == ["SKILL.md"]


@pytest.mark.parametrize("content", ["{broken", '{"on": ["push"]}'])
def test_a_name_that_other_files_have_too_hides_what_may_hold_answers(
    tmp_path: Path, content: str
) -> None:
    folder = with_case(tmp_path / "csv", "See references/triggers.json.\n")
    write(folder, "references/triggers.json", f"{content}\n")

    assert (content in load(folder).text) == (content != "{broken")


@pytest.mark.parametrize(
    "document",
    [
        {"type": "object", "required": ["input"]},
        {"jobs": [{"task": "build", "steps": ["make"]}]},
        [{"input": "1,2", "output": "3"}],
        {"skills": [{"instruction": "Go", "skill": "csv"}]},
    ],
)
def test_a_file_without_expectations_is_shown_and_installed(tmp_path: Path, document: Any) -> None:
    folder = with_case(tmp_path / "csv", "See assets/a.json.\n")
    write(folder, "assets/a.json", json.dumps(document))

    skill = load(folder)

    assert json.dumps(document) in skill.text
    assert "assets/a.json" in [file.name for file in with_files(skill).files]


@pytest.mark.parametrize(
    "entries",
    [
        *({"quality": shape} for shape in SHAPES if not isinstance(shape, dict)),
        {"should_trigger": [ANSWER], "should_not_trigger": ["Sing"]},
    ],
)
def test_cases_in_the_frontmatter_are_neither_shown_nor_installed(
    tmp_path: Path, entries: Mapping[str, Any]
) -> None:
    folder = with_case(tmp_path / "csv")
    entry = yaml.safe_dump({**entries, "triggers": ["tables", "sums"]})
    write(folder, "SKILL.md", FRONT.replace("---\n\n", f"{entry}hooks: {{}}\n---\n\n"))

    skill = with_files(load(folder))

    assert skill.text == FRONT.replace("---\n\n", "hooks: {}\n---\n\n")
    assert [file.text for file in skill.files] == [skill.text]
    assert [hint for hint in skill.hints if f"{next(iter(entries))!r} reads as cases" in hint]


def test_other_entries_of_the_frontmatter_are_shown(tmp_path: Path) -> None:
    folder = with_case(tmp_path / "csv")
    entry = yaml.safe_dump({"inputs": [{"name": "file"}], "triggers": ["tables", "sums"]})
    text = FRONT.replace("---\n\n", f"{entry}---\n\n")
    write(folder, "SKILL.md", text)

    assert load(folder).text == text


def test_a_named_file_that_reads_as_cases_is_a_warning(tmp_path: Path) -> None:
    folder = with_case(tmp_path / "csv", "See assets/a.json and evals/evals.json.\n")
    write(folder, "assets/a.json", json.dumps(SHAPES[0]))
    write(folder, "evals/evals.json", json.dumps(SHAPES[0]))

    (warning,) = load(folder).hints
    assert warning == (
        f"{folder}/SKILL.md:7:5: left out of the context: 'assets/a.json' reads as a case file, "
        "and no model may see its answers"
    )


def test_a_link_or_a_detour_to_answers_shows_none(tmp_path: Path) -> None:
    folder = with_case(tmp_path / "csv", "[a](a.md) [b](docs/b.md) [c](x/../evals/c.md)")
    for name in ("evals/a.md", "evals/b.md", "evals/c.md", "x/y.md"):
        write(folder, name, ANSWER)
    (folder / "a.md").symlink_to("evals/a.md")
    (folder / "docs").symlink_to("evals")

    assert ANSWER not in load(folder).text


def test_files_with_which_answers_are_compared_are_hidden(tmp_path: Path) -> None:
    folder = with_case(tmp_path / "csv", "See golden/a.md and docs/b.md and references/c.md.")
    for name in ("golden/a.md", "docs/b.md", "references/c.md", "tests/d.md"):
        write(folder, name, f"{ANSWER} {name}")
    case = {"prompt": "What?", "expected": "golden/a.md", "expected_references": ["docs/b.md"],
            "reference_answer": "d.md", "golden_files": ["references/c.md"]}  # fmt: skip
    write(folder, "tests/evals.json", json.dumps([case]))

    skill = with_files(load(folder, "tests/evals.json"))

    assert re.findall(r"file name=\"(.*?)\"", skill.text) == ["docs/b.md", "references/c.md"]
    assert [file.name for file in skill.files] == ["SKILL.md", "docs/b.md", "references/c.md"]


def test_an_earlier_version_hides_the_same_files(tmp_path: Path) -> None:
    folder = with_case(tmp_path / "csv", "Old. See a.json and checks/b.yaml.")
    write(folder, "a.json", json.dumps(SHAPES[0]))
    write(folder, "checks/b.yaml", f"notes: {ANSWER}")
    commit_all(tmp_path)
    with_case(folder, "New. See a.json and checks/b.yaml.")

    skill = with_history(
        with_files(load(folder)), BranchPoint("HEAD", tmp_path), NO_EXTENSIONS, Catalogues()
    )

    assert skill.before is not None
    assert "Old." in skill.before.text
    assert ANSWER not in skill.before.text
    assert [file.name for file in skill.before.files] == ["SKILL.md"]


OWN = ("SKILL.md", "references/x.md", "scripts/run.py", "docs/named.md")
SPELLINGS: tuple[Any, ...] = (
    list(OWN),
    [f"./{name}" for name in OWN],
    [f"docs/../{name}" for name in OWN],
    [f"csv/{name}" for name in OWN],
    ["."],
    ["SKILL.md", "references", "scripts/", "docs"],
    ["evals/link.md", "evals/copy.md", *OWN[2:]],
    [{"path": "skill.txt", "content": FRONT + "Secret. Read docs/named.md.\r\n"}],
)


@pytest.mark.parametrize("files", SPELLINGS)
def test_the_skills_own_files_reach_no_arm_as_input(tmp_path: Path, files: Any) -> None:
    folder = with_case(tmp_path / "csv", "Secret. Read docs/named.md.\n")
    for name in OWN[1:]:
        write(folder, name, "Secret.")
    write(folder, "evals/copy.md", FRONT + "Secret. Read docs/named.md.\n")
    (folder / "evals/link.md").symlink_to("../references/x.md")
    write(folder, "data/in.csv", "1,2")
    case = {"prompt": "Read it", "files": [*files, "data/in.csv"], "assertions": ["Reads it"]}
    write(folder, "evals/evals.json", json.dumps([case]))

    skill = load(folder, "evals/evals.json")

    (only,) = skill.cases
    assert only.skip is None
    assert "Secret." not in str(only.files)
    assert given_files(only)["data/in.csv"] == "1,2"
    (warning,) = skill.warnings
    assert warning.startswith(f"{folder}/evals/evals.json: left out of every arm, as ")
    installed = [file.name for file in with_files(skill).files]
    assert installed == ["SKILL.md", "docs/named.md", "references/x.md", "scripts/run.py"]


def test_a_case_file_as_input_skips_the_case(tmp_path: Path) -> None:
    folder = with_case(tmp_path / "csv")
    case = {"prompt": "Read it", "files": ["evals/evals.json"], "assertions": [ANSWER]}
    write(folder, "evals/evals.json", json.dumps([case]))

    (only,) = load(folder, "evals/evals.json").cases

    assert only.files == ()
    assert only.skip == (
        "files: 'evals/evals.json' is a case file, and no model may see its answers"
    )


def test_a_folder_of_inputs_is_given_without_case_files(tmp_path: Path) -> None:
    folder = with_case(tmp_path / "csv")
    case = {"prompt": "Read it", "files": ["evals"], "assertions": [ANSWER]}
    write(folder, "evals/evals.json", json.dumps([case]))
    write(folder, "evals/files/in.csv", "1,2")

    (only,) = load(folder, "evals/evals.json").cases

    assert given_files(only) == {"evals/files/in.csv": "1,2"}


def test_a_workspace_holds_neither_the_skill_nor_its_cases(tmp_path: Path) -> None:
    folder = with_case(tmp_path / "csv", workspace=".")
    for name in ("references/x.md", "scripts/run.py", "evals/evals.json", "in/data.csv"):
        write(folder, name, json.dumps(SHAPES[0]))

    (case,) = load(folder).cases

    assert [file.name for file in case.workspace] == ["in/data.csv"]


def test_no_request_of_either_arm_has_the_answers_or_gives_away_the_skill(
    run_once: Run, pytester: pytest.Pytester, loopback: Loopback
) -> None:
    pytester.makeini("[pytest]\nupskill_case_files = quiz.yaml")
    folder = pytester.path / "csv"
    write(folder, "SKILL.md", f"{FRONT}The rule. See quiz.yaml, all.json, references/x.md.\n")
    for name in ("quiz.yaml", "all.json"):
        write(folder, name, json.dumps(SHAPES[0]))
    write(folder, "references/x.md", "The rule again.")
    write(folder, "evals/in.csv", "Given.")
    files = ["SKILL.md", "references/x.md", "evals/in.csv"]
    assertions = [{"type": "contains", "value": ANSWER}]
    case = {"id": "a", "prompt": "Read it", "files": files, "assertions": assertions}
    write(folder, "evals/evals.json", json.dumps([case]))

    result = run_once("csv", f"--upskill-models=m@{loopback.url}", "-W", "default", "-rw")

    one, other = sorted(loopback.requests, key=lambda received: "The rule" in received.system)
    assert ANSWER not in str([one.body, other.body])
    assert one.user == other.user
    assert "Given." in one.user
    assert "The rule" not in str(one.body)
    assert other.system.count("The rule") == 2
    result.stdout.fnmatch_lines(
        ["*left out of every arm, as the arm without the skill would get*SKILL.md, references/x.md"]
    )


def test_all_files_of_a_case_that_is_a_folder_are_hidden(tmp_path: Path) -> None:
    grader = "skill-evals/one/graders/a.md"
    folder = with_case(tmp_path / "csv", f"See `{grader}` and `retrieval/graders/b.md`.\n")
    write(folder, "skill-evals/one/prompt.md", "What is the answer?\n")
    write(folder, grader, f"---\ntype: llm\n---\nThe answer is {ANSWER}\n")
    write(folder, "retrieval/prompt.md", "Retrieve it.\n")
    write(folder, "retrieval/graders/b.md", "# Plain\n")

    assert ANSWER not in seen(load(folder))
    assert [each.name for each in with_files(load(folder)).files] == [
        "SKILL.md",
        "retrieval/graders/b.md",
        "retrieval/prompt.md",
    ]


def test_a_folder_with_many_files_is_searched_for_a_case_only_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"rules/rule-{number:03}.md" for number in range(100)]
    folder = with_case(tmp_path / "csv", "\n".join(f"See {name}." for name in names))
    for name in names:
        write(folder, name, "A rule.")
    asked: list[str] = []

    def counted(path: str, *places: str) -> bool:
        asked.append(path)
        return is_at(path, *places)

    monkeypatch.setattr("pytest_upskill.cases.adapters.registry.is_at", counted)

    assert load(folder).text.count("A rule.") == len(names)
    assert len(asked) < 10 * len(names)
