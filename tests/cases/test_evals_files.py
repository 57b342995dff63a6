"""Files that a case of an evals file sends along."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.cases.load import load_skills
from pytest_upskill.cases.skill import Case
from pytest_upskill.checks.files import MAX_BYTES, MAX_FILES
from tests.evals import given

MISSING = "does not exist in the skill's folder"
TEXT = "---\nname: csv\ndescription: Reads CSV.\n---\n\n# CSV\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "csv"
    (folder / "evals" / "files").mkdir(parents=True)
    (folder / "SKILL.md").write_text(TEXT, "utf-8")
    (folder / "evals" / "files" / "a.csv").write_bytes(b"\xef\xbb\xbf1,2\r\n")
    return folder


def read(folder: Path, *files: Any) -> Case:
    entry = {"prompt": "Read it", "files": list(files), "assertions": ["Reads it"]}
    (folder / "evals" / "evals.json").write_text(json.dumps([entry]), "utf-8")
    return load_skills(folder / "evals" / "evals.json")[0].cases[0]


def test_a_file_is_named_from_the_skills_folder(folder: Path) -> None:
    case = read(folder, "evals/files/a.csv")

    assert (given(case), case.skip) == ({"evals/files/a.csv": "1,2\n"}, None)


def test_a_file_may_be_named_from_the_folder_of_the_cases(folder: Path) -> None:
    assert given(read(folder, "files/a.csv")) == {"files/a.csv": "1,2\n"}


def test_a_file_may_be_named_from_a_folder_above(folder: Path) -> None:
    assert given(read(folder, "csv/evals/files/a.csv")) == {"csv/evals/files/a.csv": "1,2\n"}


def test_what_only_a_folder_above_has_is_outside_both_folders(folder: Path) -> None:
    (folder.parent / "README.md").write_text("# All skills", "utf-8")

    case = read(folder, "README.md")

    where = "the skill's folder and the cases' folder: copy it into the latter"
    assert case.skip == f"files: 'README.md' is outside both {where}"
    assert not given(case)


def test_a_folder_is_all_its_files_in_order_of_name(folder: Path) -> None:
    (folder / "evals" / "files" / "sub").mkdir()
    (folder / "evals" / "files" / "sub" / "b.csv").write_text("3", "utf-8")

    case = read(folder, "evals/files/")

    assert list(given(case).items()) == [
        ("evals/files/a.csv", "1,2\n"),
        ("evals/files/sub/b.csv", "3"),
    ]


@pytest.mark.parametrize("nothing", ["", None])
def test_an_empty_name_is_no_file(nothing: Any, folder: Path) -> None:
    assert list(given(read(folder, nothing, "files/a.csv"))) == ["files/a.csv"]


def test_a_file_may_be_an_object_with_its_path(folder: Path) -> None:
    assert given(read(folder, {"path": "files/a.csv"})) == {"files/a.csv": "1,2\n"}


def test_a_file_may_stand_in_its_case(folder: Path) -> None:
    case = read(folder, {"path": "src/a.py", "content": "print()"})

    assert given(case) == {"src/a.py": "print()"}


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("none.csv", f"files: 'none.csv' {MISSING}"),
        ("evls", f"files: 'evls' {MISSING}"),
        ("loop", f"files: 'loop' {MISSING}"),
        ("big.txt", "files: 'big.txt' cannot be read: larger than 1 MiB"),
        ("half", "files: 'half' contains over 1 MiB or 2,000 files: remove what it needs least"),
        ("many", "files: 'many' contains over 1 MiB or 2,000 files: remove what it needs least"),
    ],
)
def test_a_file_that_cannot_be_read_skips_the_case(folder: Path, name: str, reason: str) -> None:
    (folder / "loop").symlink_to(folder / "loop")
    (folder / "big.txt").write_bytes(b"a" * (MAX_BYTES + 1))
    for inner, count, content in (("half", 3, b"a" * (400 << 10)), ("many", MAX_FILES + 1, b"")):
        (folder / inner).mkdir()
        for number in range(count):
            (folder / inner / f"{number}.txt").write_bytes(content)

    assert read(folder, "evals/files/a.csv", name).skip == reason


@pytest.mark.parametrize("name", ["../out.csv", "evals/link.csv", "out", "loop/.."])
def test_a_path_out_of_the_skills_folder_is_not_read_and_skips_the_case(
    folder: Path, name: str
) -> None:
    (folder.parent / "out").mkdir()
    (folder.parent / "out" / "x.csv").write_text("secret", "utf-8")
    (folder.parent / "out.csv").write_text("secret", "utf-8")
    (folder / "evals" / "link.csv").symlink_to(folder.parent / "out.csv")
    (folder / "out").symlink_to(folder.parent / "out")
    (folder / "loop").symlink_to(folder.parent / "out")

    case = read(folder, "evals/files/a.csv", name)

    assert case.skip == f"files: {name!r} leads outside the skill's folder: copy it into that"
    assert "secret" not in str(case.files)


def test_a_link_out_of_a_folder_of_files_is_not_read_and_skips_the_case(folder: Path) -> None:
    (folder.parent / "out.csv").write_text("secret", "utf-8")
    (folder / "evals" / "files" / "link.csv").symlink_to(folder.parent / "out.csv")

    case = read(folder, "evals/files")

    why = "leads outside the skill's folder: copy it into that"
    assert case.skip == f"files: 'evals/files/link.csv' {why}"
    assert "secret" not in str(case.files)


@pytest.mark.parametrize("name", ["/etc/hosts", "/home/author/data.csv"])
def test_an_absolute_path_is_not_read_and_skips_the_case(folder: Path, name: str) -> None:
    case = read(folder, "evals/files/a.csv", name)

    why = "leads outside the skill's folder: copy it into that"
    assert case.skip == f"files: {name!r} {why}"
    assert given(case) == {"evals/files/a.csv": "1,2\n"}


@pytest.mark.parametrize("name", ["evals/fixtures/a.csv", "fixtures/a.csv", "../fixtures/a.csv"])
def test_a_file_may_lie_with_the_cases_of_all_skills(folder: Path, name: str) -> None:
    folder = folder.rename(folder.parent / "skills")
    (folder / "csv").mkdir()
    (folder / "SKILL.md").rename(folder / "csv" / "SKILL.md")
    cases = folder.parent / "evals" / ("csv" if name.startswith("..") else "") / "evals.json"
    cases.parent.mkdir(parents=True)
    (folder.parent / "evals" / "fixtures").mkdir()
    (folder.parent / "evals" / "fixtures" / "a.csv").write_text("1,2", "utf-8")
    entry = {"prompt": "Read it", "files": [name, "../README.md"], "assertions": ["Reads it"]}
    (folder.parent / "README.md").write_text("# All skills", "utf-8")
    cases.write_text(json.dumps({"skill_name": "csv", "evals": [entry]}), "utf-8")

    (skill,) = load_skills(cases)

    (case,) = skill.cases
    assert given(case) == {name: "1,2"}
    assert case.skip == "files: '../README.md' leads outside the skill's folder: copy it into that"


def test_an_object_with_a_path_is_a_folder_and_how_it_is_made(folder: Path) -> None:
    fixture = {"status": "ready", "path": "evals/files", "invocation": "bash setup.sh"}
    entry = {"prompt": "Read it", "fixture": fixture, "assertions": ["Reads it"]}
    (folder / "evals" / "evals.json").write_text(json.dumps([entry]), "utf-8")

    (case,) = load_skills(folder / "evals" / "evals.json")[0].cases

    assert [file.name for file in case.workspace] == ["a.csv"]
    assert (case.setup.commands, case.skip) == (("bash setup.sh",), None)


def test_a_prompt_that_is_the_name_of_a_file_is_what_the_file_says(folder: Path) -> None:
    (folder / "evals" / "prompts").mkdir(parents=True)
    (folder / "evals" / "prompts" / "a.md").write_text("Say hi\n", "utf-8")
    cases = [
        {"prompt": "evals/prompts/a.md", "assertions": ["Says hi"]},
        {"prompt": "evals/prompts/b.md", "assertions": ["Says hi"]},
    ]
    (folder / "evals" / "evals.json").write_text(json.dumps(cases), "utf-8")

    (skill,) = load_skills(folder / "evals" / "evals.json")

    assert [case.input for case in skill.cases] == ["Say hi", "evals/prompts/b.md"]


def asked(folder: Path, prompt: str, **entry: Any) -> Case:
    case = {"prompt": prompt, "assertions": ["Reads it"], **entry}
    (folder / "evals" / "evals.json").write_text(json.dumps([case]), "utf-8")
    return load_skills(folder / "evals" / "evals.json")[0].cases[0]


@pytest.mark.parametrize("above", ["", "/home/ada/.agents/skills/csv/"])
def test_a_file_of_the_cases_that_only_the_question_names_is_given(
    above: str, folder: Path
) -> None:
    prompt = f"Will it scale? File: {above}evals/files/a.csv."

    case = asked(folder, prompt)

    assert (case.input, given(case), case.skip) == (prompt, {"evals/files/a.csv": "1,2\n"}, None)


def test_a_folder_of_the_cases_that_only_the_question_names_is_given(folder: Path) -> None:
    assert given(asked(folder, "Review /Users/ada/csv/evals/files")) == {
        "evals/files/a.csv": "1,2\n"
    }


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        ("evals/evals.json", {}),
        ("evals/files/none.csv", {}),
        ("evals/files/expected.csv", {}),
        ("evals/files/tables/expected.csv", {}),
        ("evals/files/b.csv", {"reference_answer": "evals/files/b.csv"}),
        ("evals/files/b.csv", {"files": ["evals/files/a.csv"]}),
        ("scripts/fixtures/b.csv", {}),
        ("../other/evals/files/b.csv", {}),
    ],
)
def test_cases_answers_and_the_skills_own_files_are_not_given(
    name: str, entry: Any, folder: Path
) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    if not (folder / name).exists() and "none" not in name:
        (folder / name).write_text("37", "utf-8")

    case = asked(folder, f"Read {name}", **entry)

    assert "37" not in "".join(given(case).values())
    assert case.skip is None


def test_input_files_are_files(folder: Path) -> None:
    assert given(asked(folder, "Read it", input_files=["evals/files/a.csv"]))


def test_a_folder_with_an_answer_is_not_given(folder: Path) -> None:
    (folder / "evals" / "files" / "expected.csv").write_text("37", "utf-8")

    assert given(asked(folder, "Review evals/files")) == {}


@pytest.mark.parametrize("place", ["evals", ""])
def test_a_fixture_is_found_in_the_folder_of_fixtures_by_its_name(folder: Path, place: str) -> None:
    fixture = folder / place / "fixtures" / "shop" / "a.py"
    fixture.parent.mkdir(parents=True)
    fixture.write_text("a = 1\n", "utf-8")
    file = folder / "evals" / "cases.json"

    def read(name: str) -> Case:
        entry = {"prompt": "Read it", "fixture": name, "assertions": ["Reads it"]}
        file.write_text(json.dumps([entry]), "utf-8")
        return load_skills(file)[0].cases[0]

    assert [each.name for each in read("shop").workspace] == ["a.py"]
    assert read("shops").skip == "fixture: 'shops' does not exist in the skill's folder"
