"""A skill and its cases are loaded from a folder, or refused with every reason."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from pytest_upskill.cases.load import SkillError, load_skills
from pytest_upskill.checks.structure import JsonSchema

TEXT = "---\nname: csv\ndescription: Reads CSV.\n---\n\n# CSV\n"
CASES = '[{"input": "Say hi", "expected": {"contains": "hi"}}]'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "csv"
    folder.mkdir()
    (folder / "SKILL.md").write_text(TEXT, "utf-8")
    (folder / "skill_meta.json").write_text(CASES, "utf-8")
    return folder


def refusal(folder: Path) -> list[str]:
    with pytest.raises(SkillError) as caught:
        load_skills(folder / "skill_meta.json", shown="skills/csv/skill_meta.json")
    return str(caught.value).splitlines()


def write_schema_case(folder: Path, name: str) -> None:
    cases = [{"input": "a", "expected": {"json_schema": name}}]
    (folder / "skill_meta.json").write_text(json.dumps(cases), "utf-8")


def test_a_skill_is_its_text_and_its_cases(folder: Path) -> None:
    (skill,) = load_skills(folder / "skill_meta.json")

    assert (skill.name, skill.text) == ("csv", TEXT)
    assert [case.id for case in skill.cases] == ["say-hi"]
    assert skill.case_file == folder / "skill_meta.json"
    assert skill.warnings == ()


def test_a_byte_order_mark_is_no_part_of_the_text(folder: Path) -> None:
    (folder / "SKILL.md").write_text(TEXT, "utf-8-sig")
    (folder / "skill_meta.json").write_text(CASES, "utf-8-sig")

    assert load_skills(folder / "skill_meta.json")[0].text == TEXT


def test_hints_carry_the_path_that_is_shown(folder: Path) -> None:
    (folder / "SKILL.md").write_text(TEXT.replace("csv", "tsv"), "utf-8")

    (skill,) = load_skills(folder / "skill_meta.json", shown="skills/csv/skill_meta.json")

    assert skill.hints == ("skills/csv/SKILL.md:2:7: name: must be the name of its folder, 'csv'",)


def test_the_problems_of_both_files_are_reported_at_once(folder: Path) -> None:
    (folder / "SKILL.md").write_text("---\n", "utf-8")
    (folder / "skill_meta.json").write_text("[1]", "utf-8")

    assert refusal(folder) == [
        "skills/csv/SKILL.md:1:1: the frontmatter has no end: close it with a line '---'",
        "skills/csv/skill_meta.json:1:2: [0]: must be an object, got 1",
    ]


def test_cases_without_a_skill_are_refused(folder: Path) -> None:
    (folder / "SKILL.md").unlink()

    assert refusal(folder) == [
        "skills/csv: no SKILL.md beside skill_meta.json: move it beside the SKILL.md of its skill"
    ]


@pytest.mark.parametrize(
    ("moved", "cure"),
    [
        ("skill.md", "rename skill.md to SKILL.md"),
        ("Skill.MD", "rename Skill.MD to SKILL.md"),
        ("../SKILL.md", "move it one folder up, where the SKILL.md is"),
    ],
)
def test_where_the_skill_has_another_name_or_place_the_cure_is_said(
    folder: Path, moved: str, cure: str
) -> None:
    (folder / "SKILL.md").rename(folder / moved)

    assert refusal(folder) == [f"skills/csv: no SKILL.md beside skill_meta.json: {cure}"]


@pytest.mark.parametrize("name", ["SKILL.md", "skill_meta.json"])
@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"ab\n\xc3\xa9\xe9\n", ":2:2: byte 5 (0xe9) is not UTF-8: save the file as UTF-8"),
        ("a".encode("utf-16"), ":1:1: byte 0 (0xff) is not UTF-8: save the file as UTF-8"),
        (b" " * (5 << 20), ": cannot be read: larger than 1 MiB: split it"),
    ],
    ids=["Latin-1", "UTF-16", "5 MiB"],
)
def test_a_file_that_is_no_text_of_usual_size_is_refused(
    folder: Path, name: str, content: bytes, problem: str
) -> None:
    (folder / name).write_bytes(content)

    assert refusal(folder) == [f"skills/csv/{name}{problem}"]


def test_a_folder_in_the_place_of_a_file_is_refused(folder: Path) -> None:
    (folder / "SKILL.md").unlink()
    (folder / "SKILL.md").mkdir()

    assert refusal(folder) == ["skills/csv/SKILL.md: cannot be read: not a regular file"]


def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(folder: Path) -> None:
    (folder / "SKILL.md").unlink()
    os.mkfifo(folder / "SKILL.md")

    assert refusal(folder) == ["skills/csv/SKILL.md: cannot be read: not a regular file"]


def test_a_file_that_may_not_be_read_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deny(_path: Path, _flags: int) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", deny)

    assert refusal(folder) == [
        "skills/csv/SKILL.md: cannot be read: Permission denied",
        "skills/csv/skill_meta.json: cannot be read: Permission denied",
    ]


def test_a_schema_is_read_from_the_skills_folder(folder: Path) -> None:
    (folder / "schemas").mkdir()
    (folder / "schemas" / "answer.json").write_text('{"type": "object"}', "utf-8")
    write_schema_case(folder, "schemas/answer.json")

    (case,) = load_skills(folder / "skill_meta.json")[0].cases

    assert case.checks == (JsonSchema(schema={"type": "object"}),)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("none.json", "none.json: cannot be read: No such file or directory"),
        (
            "bad.json",
            "bad.json:1:8: a comma before the closing bracket: remove it",
        ),
        ("../out.json", "'../out.json' leads outside the skill's folder: copy it into that"),
        ("link.json", "'link.json' leads outside the skill's folder: copy it into that"),
        ("/etc/hosts", "'/etc/hosts' leads outside the skill's folder: copy it into that"),
    ],
)
def test_a_schema_that_cannot_be_read_is_refused(folder: Path, name: str, problem: str) -> None:
    (folder / "bad.json").write_text('{"a": 1,}', "utf-8")
    (folder.parent / "out.json").write_text("{}", "utf-8")
    (folder / "link.json").symlink_to(folder.parent / "out.json")
    write_schema_case(folder, name)

    (line,) = refusal(folder)

    assert line.removeprefix("skills/csv/skill_meta.json:1:") == (
        f"45: [0].expected.json_schema: {problem}"
    )


def test_a_workspace_takes_no_file_from_elsewhere_by_a_link(folder: Path) -> None:
    (folder / "start").mkdir()
    (folder / "start" / "in.csv").write_text("1", "utf-8")
    (folder / "start" / "link").symlink_to("/etc/passwd")
    case = {"input": "a", "workspace": "start", "expected": {"contains": "x"}}
    (folder / "skill_meta.json").write_text(json.dumps([case]), "utf-8")

    (problem,) = refusal(folder)
    what = "'start/link' leads outside the skill's folder: copy it into that"
    assert problem == f"skills/csv/skill_meta.json:1:30: [0].workspace: {what}"


def test_a_workspace_that_has_only_files_of_the_skill_is_refused(folder: Path) -> None:
    case = {"input": "a", "workspace": {"x": {"source": "."}}, "expected": {"contains": "x"}}
    (folder / "skill_meta.json").write_text(json.dumps([case]), "utf-8")

    (problem,) = refusal(folder)
    what = "'.' contains no files but those of the skill and its cases"
    assert problem == f"skills/csv/skill_meta.json:1:30: [0].workspace: {what}"


@pytest.mark.parametrize(
    ("workspace", "names"),
    [
        (".", [".env", "data/in.csv"]),
        ("data", ["in.csv"]),
        ("data/in.csv", ["in.csv"]),
        ({"a/b.csv": {"source": "data/in.csv"}}, ["a/b.csv"]),
        ({"all": {"source": "."}}, ["all/.env", "all/data/in.csv"]),
    ],
)
def test_a_workspace_has_its_files_by_their_names(
    folder: Path, workspace: object, names: list[str]
) -> None:
    for name in (".env", "data/in.csv"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("1", "utf-8")
    case = {"input": "a", "workspace": workspace, "expected": {"contains": "x"}}
    (folder / "skill_meta.json").write_text(json.dumps([case]), "utf-8")

    (skill,) = load_skills(folder / "skill_meta.json")

    assert [file.name for file in skill.cases[0].workspace] == names
