"""Which files hold cases, and to which skill a file belongs, by its name and place."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pytest_upskill.cases.discovery import CaseDiscovery, skill_folders
from tests.cases.conftest import CASE, IDS, collected, write
from tests.conftest import Run

PLACES = [
    "evals.json",
    "evals.yaml",
    "evals/evals.yml",
    "evals/evals.jsonl",
    "evals/trigger-queries.json",
    "evals/trigger-eval.json",
    "evals/evals-full.json",
    "evals/cases.json",
    "evals/output-eval.json",
    "evals/routing/evals2.json",
    "eval/evals.json",
    "tests/evals.json",
    "tests/eval.yaml",
    "benchmark/evals.json",
    "references/evals.yaml",
    "references/evals/evals.json",
    "modes/fast/evals.json",
    "test-prompts.json",
]


def test_files_of_each_name_and_place_in_a_skill_are_collected(run_once: Run, folder: Path) -> None:
    for place in PLACES:
        write(folder / place, CASE if place.endswith("l") else [CASE])

    assert sorted(collected(run_once)) == sorted(
        nodeid.replace("evals/evals.json", place) for place in PLACES for nodeid in IDS
    )


@pytest.mark.parametrize("place", ["evals/trigger-queries.json", "evals.json"])
def test_cases_kept_beside_a_folder_of_one_skill_are_for_it(
    run_once: Run, folder: Path, place: str
) -> None:
    write(folder.parent.parent / place, [CASE | {"should_trigger": True}])

    ids = [nodeid.replace("skills/billing/evals/evals.json", place) for nodeid in IDS]
    assert collected(run_once, ".") == [*ids, ids[0].replace("-with_skill", "-trigger")]


def test_a_trigger_set_of_each_skill_belongs_to_it(run_once: Run, folder: Path) -> None:
    document = {"billing": {"should_trigger": ["Bill it"], "should_not_trigger": ["Sing"]}}
    other = folder.parent / "parcels" / "SKILL.md"
    other.parent.mkdir()
    other.write_text("---\nname: parcels\ndescription: Facts.\n---\n", "utf-8")
    write(folder.parent.parent / "evals" / "trigger-queries.json", document)

    ids = collected(run_once, "evals")

    assert ids == [
        f"evals/trigger-queries.json::billing::{case}[offline-trigger]"
        for case in ("bill-it", "sing")
    ]


@pytest.mark.parametrize("place", ["evals/evals.json", "evals.json"])
def test_cases_kept_beside_the_only_skill_are_for_it(
    run_once: Run, folder: Path, place: str
) -> None:
    top = folder.parent.parent
    only = folder.rename(top / "skill") / "SKILL.md"
    only.write_text(only.read_text("utf-8").replace("name: billing", "name: skill"), "utf-8")
    write(top / place)

    assert collected(run_once, ".") == [
        nodeid.replace("skills/billing/evals/evals.json", place) for nodeid in IDS
    ]


@pytest.mark.parametrize("is_link", [True, False])
def test_a_skill_that_is_there_for_several_agents_is_the_only_one(
    run_once: Run, folder: Path, *, is_link: bool
) -> None:
    other = folder.parent.parent / ".claude" / "skills" / "billing"
    other.parent.mkdir(parents=True)
    if is_link:
        other.symlink_to(folder)
    else:
        shutil.copytree(folder, other)
    write(folder.parent.parent / "evals" / "evals.json")

    assert collected(run_once, ".") == [
        nodeid.replace("skills/billing/evals/evals.json", "evals/evals.json") for nodeid in IDS
    ]


def test_cases_in_a_folder_named_after_a_missing_skill_do_not_run(
    run_once: Run, folder: Path
) -> None:
    write(folder.parent.parent / "evals" / "parcels" / "evals.json")

    result = run_once("-W", "default", "--upskill-models", "offline", "evals")

    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.stdout.fnmatch_lines(
        ["*parcels/evals.json: none of its cases can run: does not say which skill it tests: *"]
    )


def test_an_evals_file_without_a_skill_is_left_alone(
    run_once: Run, pytester: pytest.Pytester
) -> None:
    write(pytester.path / "evals" / "evals.json", {"metrics": ["accuracy"]})

    result = run_once("--upskill-models", "offline", "evals")

    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_an_evals_file_without_a_skill_says_so_when_it_is_named(run_once: Run) -> None:
    write(Path("evals", "evals.json"))

    result = run_once("--upskill-models", "offline", "evals/evals.json")

    result.stdout.fnmatch_lines(
        ["evals/evals.json: none of its cases can run: does not say which skill it tests: *"]
    )


@pytest.mark.parametrize(
    ("home", "place"),
    [
        ("skills", "testing/billing/evals/evals.json"),
        ("skills", "evals/billing/cases.json"),
        ("skills", "workspace/billing/trigger-eval.json"),
        ("skills", "testing/billing/query-workspace/trigger-eval.json"),
        ("money", "evals/billing/evals.json"),
        (".github/skills", "evals/evals.json"),
        (".github/skills/money", "evals/evals.json"),
        (".claude/skills", "evals/evals.json"),
        (".agents/skills", "evals/billing/evals.json"),
        ("plugins/money/skills", "tests/money/billing/eval.yaml"),
        ("plugins/money/skills", "evals/evals.json"),
        ("skills/finance", "tests/evals.json"),
        ("", "evals/evals.json"),
    ],
)
def test_a_file_beside_the_skills_is_for_the_one_that_it_or_its_folder_names(
    run_once: Run, folder: Path, home: str, place: str
) -> None:
    top = folder.parent.parent
    for name in ("billing", "parcels"):
        (top / home / name).mkdir(parents=True, exist_ok=True)
        text = (folder / "SKILL.md").read_text("utf-8").replace("name: billing", f"name: {name}")
        (top / home / name / "SKILL.md").write_text(text, "utf-8")
    if home != "skills":
        (folder / "SKILL.md").unlink()
    named = {} if "billing" in place else {"skill_name": "billing"}
    write(top / place, {**named, "evals": [CASE]})

    result = run_once("--upskill-models", "offline", place.partition("/")[0])

    result.stdout.fnmatch_lines([f"{place} .-*", "billing", "  offline  0->100% *+100 *"])


def test_files_of_a_common_name_that_hold_no_cases_of_a_skill_are_left_alone(
    run_once: Run, folder: Path
) -> None:
    for place, value in {
        "evals/cases.json": [{"question": "Who?", "label": 3}],
        "eval/cases.json": {"cases": [{"title": "a"}]},
        "assets/evals.json": [CASE],
        "assets/cases.json": [CASE],
        "../../data/cases.json": [CASE],
        "evals/eval-results.json": [CASE],
    }.items():
        write(folder / place, value)

    assert collected(run_once, ".") == []


def test_the_copies_that_skill_creator_makes_are_no_cases_of_their_own(
    run_once: Run, folder: Path
) -> None:
    workspace = folder.parent / "csv-workspace"
    for place in ("skill-snapshot-v2", "iteration-1/eval-0/with_skill/outputs/csv"):
        write(workspace / place / "evals" / "evals.json")
        (workspace / place / "SKILL.md").write_bytes((folder / "SKILL.md").read_bytes())
    write(folder / "evals" / "evals.json")

    assert collected(run_once, ".") == IDS
    assert [*skill_folders(folder.parents[1])] == [folder]


def test_a_project_inside_such_a_folder_has_its_cases(folder: Path) -> None:
    project = folder.parent / "csv-workspace/iteration-1/outputs"
    write(project / "skills/csv/evals/evals.json")
    (project / "skills/csv/SKILL.md").write_bytes((folder / "SKILL.md").read_bytes())
    file = project / "skills/csv/evals/evals.json"

    assert not CaseDiscovery(root=folder.parent).is_case_file(file)
    assert CaseDiscovery(root=project).is_case_file(file)
    assert [*skill_folders(project)] == [project / "skills/csv"]


@pytest.mark.parametrize(
    "place",
    ["evals.json", "evals/api/evals.json", "modes/fast/evals.json", "../../tests/evals.json"],
)
def test_a_skill_has_cases_wherever_a_file_may_hold_them(folder: Path, place: str) -> None:
    root = folder.parents[1]
    assert not CaseDiscovery(root=root).skill_has_cases(folder)

    write(folder / place)

    assert CaseDiscovery(root=root).skill_has_cases(folder)


def test_each_case_of_a_shared_file_runs_with_the_skill_that_it_names(
    run: Run, folder: Path
) -> None:
    other = folder.parent / "parcels"
    other.mkdir()
    (other / "SKILL.md").write_text(
        "---\nname: parcels\ndescription: Facts.\n---\n\nA parcel may weigh 12 kg.\n", "utf-8"
    )
    weight = {
        "id": "weight",
        "skill": "parcels",
        "prompt": "How much may a parcel weigh?",
        "assertions": [{"type": "contains", "value": "12"}],
    }
    lost = CASE | {"id": "lost", "skill": "letters"}
    write(
        folder.parent.parent / "evals" / "evals.json", [CASE | {"skill": "billing"}, weight, lost]
    )

    result = run("--upskill-models", "offline", "-rs", "evals")

    result.assert_outcomes(passed=6, skipped=2)
    result.stdout.fnmatch_lines(
        ["billing", "  offline  0->100% *", "parcels", "  offline  0->100% *"]
    )
    result.stdout.fnmatch_lines(["SKIPPED*: skill: no skill near this file is called 'letters'"])
    ids = collected(run, "evals/evals.json::parcels")
    assert ids == [
        "evals/evals.json::parcels::weight[offline-with_skill]",
        "evals/evals.json::parcels::weight[offline-without_skill]",
    ]


def test_a_setting_adds_names_of_case_files(
    run_once: Run, pytester: pytest.Pytester, folder: Path
) -> None:
    write(folder / "evals" / "quiz.json")
    write(folder / "evals" / "deep" / "quiz-2.json")

    assert collected(run_once) == []
    pytester.makeini("[pytest]\nupskill_case_files = quiz.json evals/*/quiz-*.json\n")
    assert {line.partition("::")[0] for line in collected(run_once)} == {
        "skills/billing/evals/quiz.json",
        "skills/billing/evals/deep/quiz-2.json",
    }


def test_a_file_of_any_name_is_read_where_it_is_named(run_once: Run, folder: Path) -> None:
    write(folder / "evals" / "quiz.json")

    assert len(collected(run_once, "skills/billing/evals/quiz.json")) == 2


def test_a_line_says_as_what_a_file_in_no_place_is_read(run_once: Run, folder: Path) -> None:
    write(folder / "evals" / "quiz.json")

    result = run_once("--upskill-models", "offline", "skills/billing/evals/quiz.json")

    result.stdout.fnmatch_lines(
        ["upskill: read by their shape: *quiz.json (as agentskills.io, skill-creator)"]
    )


@pytest.mark.parametrize(
    ("text", "is_ours"),
    [
        ('{"skills": {"fire": {"level": 3}}}', False),
        ('{"gate": {}, "cases": []}', True),
        ("[]", True),
    ],
)
def test_a_skill_meta_of_another_program_holds_no_cases(
    tmp_path: Path, text: str, is_ours: bool
) -> None:
    file = tmp_path / "skill_meta.json"
    file.write_text(text, "utf-8")

    assert CaseDiscovery(root=tmp_path).is_case_file(file) is is_ours
    (tmp_path / "SKILL.md").touch()
    assert CaseDiscovery(root=tmp_path).is_case_file(file)


def test_a_file_that_names_an_unknown_skill_at_its_top_says_so(run_once: Run, folder: Path) -> None:
    document = {"skill_name": "case-management", "evals": [CASE]}
    write(folder.parent.parent / "shared" / "evals" / "evals.json", document)

    run_once("--upskill-models", "offline", "shared").stdout.fnmatch_lines(
        ["*none of its cases can run: no skill near this file is called 'case-management'*"]
    )


def test_a_trigger_list_that_is_named_after_a_missing_skill_is_of_none(
    run_once: Run, folder: Path
) -> None:
    folder.rename(folder.parent.parent / "skill")
    queries = [{"query": "Bill it", "should_trigger": True}]
    for name in ("Research_trigger_eval", "billing_trigger_eval", "my_trigger_eval"):
        write(folder.parent.parent / f"{name}.json", queries)

    ids = collected(run_once, ".")

    assert ids == [
        f"{name}_trigger_eval.json::bill-it[offline-trigger]" for name in ("billing", "my")
    ]


def test_the_name_of_a_file_begins_with_its_skill_whatever_separates_it(
    run_once: Run, folder: Path
) -> None:
    other = folder.parent / "parcels" / "SKILL.md"
    other.parent.mkdir()
    other.write_text("---\nname: parcels\ndescription: Facts.\n---\n", "utf-8")
    write(folder.parent.parent / "evals" / "billing_trigger_eval.json", [
        {"query": "Bill it", "should_trigger": True}
    ])  # fmt: skip

    assert collected(run_once, "evals") == [
        "evals/billing_trigger_eval.json::bill-it[offline-trigger]"
    ]
