"""What an agent sees of the skills, from their folders or from a committed file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_upskill.cases.catalogue import (
    Catalogue,
    Catalogues,
    ListedSkill,
    read_catalogue,
    write_catalogue,
)
from pytest_upskill.cases.lint import without_description
from pytest_upskill.cases.skill import Skill
from tests.conftest import Run, WriteSkill

NAMES = [f"skill-{number}" for number in range(12)]


def listed(*names: str) -> Catalogue:
    return Catalogue.of(ListedSkill(name=name, description=f"About {name}.") for name in names)


def order(catalogue: Catalogue, run: int) -> list[str]:
    return [line[10:-7] for line in catalogue.text(run).split("\n") if "<name>" in line]


def write(folder: Path, name: str, frontmatter: str) -> None:
    (folder / name).mkdir(parents=True)
    text = f"---\nname: {name}\n{frontmatter}\n---\n\nDo it.\n"
    (folder / name / "SKILL.md").write_text(text, "utf-8")


def skill_in(folder: Path, name: str, description: str) -> Skill:
    return Skill(
        name=name,
        description=description,
        text="",
        folder=folder / name,
        case_file=folder / name / "skill_meta.json",
        cases=(),
    )


def test_each_run_has_its_own_order_and_a_new_skill_moves_no_other() -> None:
    few, more = listed(*NAMES), listed(*NAMES, "new")

    assert order(few, 0) != order(few, 1) != sorted(NAMES)
    assert sorted(order(few, 0)) == sorted(NAMES)
    assert [name for name in order(more, 1) if name != "new"] == order(few, 1)


def test_a_description_is_escaped_as_agentskills_io_specifies() -> None:
    catalogue = Catalogue.of([ListedSkill(name="csv", description="a < b & c\nUse when asked.")])

    assert catalogue.text(0).endswith(
        "<available_skills>\n  <skill>\n    <name>csv</name>\n"
        "    <description>a &lt; b &amp; c\nUse when asked.</description>\n"
        "  </skill>\n</available_skills>"
    )


def test_the_skills_next_to_one_are_its_catalogue_unless_no_agent_can_choose_them(
    tmp_path: Path,
) -> None:
    write(tmp_path, "csv", "description: Read CSV.")
    write(tmp_path, "tsv", "description: Read TSV.")
    write(tmp_path, "own", "description: Hidden.\ndisable-model-invocation: true")
    write(tmp_path, "bare", "license: MIT")
    write(tmp_path, "huge", "description: Huge." + " " * (1 << 20))
    catalogues = Catalogues()

    catalogue = catalogues.of(skill_in(tmp_path, "csv", "Read CSV."))

    assert catalogue.names == {"csv", "tsv"}
    assert catalogue is catalogues.of(skill_in(tmp_path, "tsv", "Read TSV."))
    assert catalogues.folder(tmp_path).left_out == (
        "bare: missing from the frontmatter",
        "huge: cannot be read: larger than 1 MiB: split it",
        "own: disable-model-invocation is set",
    )


def test_of_a_committed_catalogue_only_the_skill_under_test_is_live(tmp_path: Path) -> None:
    file = tmp_path / "catalogue.json"
    assert write_catalogue(file, listed("csv", "tsv"))
    assert not write_catalogue(file, listed("tsv", "csv"))
    catalogues = Catalogues(committed=read_catalogue(file))

    changed = catalogues.of(skill_in(tmp_path, "csv", "Reads commas."))
    unchanged = catalogues.of(skill_in(tmp_path, "tsv", "About tsv."))

    assert changed.skills[0].description == "Reads commas."
    assert changed.skills[1] == unchanged.skills[1]
    assert unchanged is catalogues.committed


def test_a_renamed_skill_takes_the_place_of_its_old_name() -> None:
    new = ListedSkill(name="tables", description="About csv.")

    assert listed("csv", "tsv").with_skill(new, "csv").names == {"tables", "tsv"}


def test_the_descriptions_that_claude_code_would_cut_are_named() -> None:
    def of(count: int) -> Catalogue:
        return Catalogue.of(
            ListedSkill(name=f"skill-number-{number:03}", description="x" * 870)
            for number in range(count)
        )

    # As measured: of 20 descriptions it showed 8, of 80 it showed 7.
    assert [count - len(without_description(of(count), 8000)) for count in (8, 20, 80)] == [8, 8, 7]
    assert without_description(of(20), 8000)[0].name == "skill-number-008"


def test_the_update_writes_all_skills_and_lint_reports_a_stale_one(
    run_once: Run, write_skill: WriteSkill
) -> None:
    folder = write_skill()

    written = run_once("--upskill-catalogue-update", "skills")

    file = Path(".upskill", "catalogue.json")
    assert written.ret == 0
    written.stdout.fnmatch_lines(["upskill: catalogue of 1 skill: * written, commit it"])
    assert [each["name"] for each in json.loads(file.read_text("utf-8"))["skills"]] == ["billing"]
    assert run_once("--upskill-lint", "skills").ret == 0

    text = (folder / "SKILL.md").read_text("utf-8").replace("Facts about", "Numbers about")
    (folder / "SKILL.md").write_text(text, "utf-8")
    result = run_once("--upskill-lint", "skills")

    result.stdout.fnmatch_lines(
        ["*catalogue.json lists this skill with another description or not *"]
    )


def test_a_setting_names_another_catalogue_file(
    run_once: Run, write_skill: WriteSkill, pytester: pytest.Pytester
) -> None:
    pytester.makeini("[pytest]\nupskill_catalogue = skills.lock.json")
    write_skill()

    missing = run_once("--upskill-models", "offline", "skills")
    run_once("--upskill-catalogue-update", "skills")

    missing.stderr.fnmatch_lines(
        ["ERROR: upskill_catalogue: there is no *skills.lock.json: write *"]
    )
    assert Path("skills.lock.json").is_file()
    assert not Path(".upskill", "catalogue.json").exists()
    assert run_once("--upskill-models", "offline", "skills").ret == 0


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{}", "*catalogue.json: not a catalogue: restore it from git, or *"),
        (
            '{"format": 2, "skills": []}',
            "*catalogue.json: not a catalogue: restore it from git, or *",
        ),
    ],
)
def test_a_catalogue_that_cannot_be_used_is_a_usage_error(
    run_once: Run, write_skill: WriteSkill, text: str, problem: str
) -> None:
    write_skill()
    Path(".upskill").mkdir()
    Path(".upskill", "catalogue.json").write_text(text, "utf-8")

    result = run_once("--upskill-models", "offline", "skills")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {problem}"])
