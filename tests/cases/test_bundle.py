"""Files that a SKILL.md names go into context with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_upskill.cases.load import load_skills
from pytest_upskill.cases.skill import HiddenFiles
from pytest_upskill.cases.skill_files import Bundle, conflicts_in, read_bundle
from pytest_upskill.cases.skill_md import read_skill_text
from pytest_upskill.cases.source.files import MAX_FILE_BYTES

FRONT = "---\nname: csv\ndescription: See references/api.md.\n---\n"
CASES = '[{"input": "Say hi", "expected": {"contains": "hi"}}]'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "csv"
    for name in ("references/api.md", "references/deep.md", "scripts/run.py", "FORMS.md",
                 "evals/files/a.csv", "evals/evals.json", "tests/evals.yaml"):  # fmt: skip
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"{name} says: references/deep.md\n", "utf-8")
    return folder


def bundled(folder: Path, body: str) -> Bundle:
    return read_bundle(folder, read_skill_text(FRONT + body, folder="csv"), HiddenFiles())


def names(folder: Path, body: str) -> list[str]:
    bundle = bundled(folder, body)
    return [part.partition('">')[0] for part in bundle.text.split('<file name="')[1:]]


def test_what_the_body_names_goes_into_context_behind_the_skill(folder: Path) -> None:
    text = f"{FRONT}\nSee [the API](references/api.md#auth).\n\n"
    (folder / "SKILL.md").write_text(text, "utf-8")
    (folder / "skill_meta.json").write_text(CASES, "utf-8")

    (skill,) = load_skills(folder / "skill_meta.json")

    assert skill.text == (
        f"{text.rstrip()}\n\n"
        '<file name="references/api.md">\nreferences/api.md says: references/deep.md\n</file>'
    )
    assert [skill] == load_skills(folder / "skill_meta.json")


@pytest.mark.parametrize(
    "mention",
    [
        "[API](references/api.md)",
        "[API](./references/api.md)",
        "`references/api.md`",
        "Read references/api.md.",
        '"references/api.md"',
        "python ${CLAUDE_SKILL_DIR}/references/api.md",
        "{baseDir}/references/api.md",
    ],
)
def test_a_path_is_found_however_it_is_written(folder: Path, mention: str) -> None:
    assert names(folder, mention) == ["references/api.md"]


@pytest.mark.parametrize(
    "mention",
    [
        "https://example.com/references/api.md",
        "other/references/api.md",
        "/references/api.md",
        "../csv/references/api.md",
        "references/none.md",
        "references/",
        "SKILL.md",
        "evals/evals.json and evals/files/a.csv",
        "tests/evals.yaml",
    ],
)
def test_other_files_and_files_with_answers_do_not_go_into_context(
    folder: Path, mention: str
) -> None:
    assert names(folder, mention) == []


def test_files_keep_the_order_of_their_first_mention(folder: Path) -> None:
    body = "Fill FORMS.md with scripts/run.py; see references/api.md and FORMS.md."

    assert names(folder, body) == ["FORMS.md", "scripts/run.py", "references/api.md"]


def test_a_file_that_does_not_fit_is_left_out_with_a_warning(folder: Path) -> None:
    (folder / "references" / "api.md").write_bytes(b"a" * (MAX_FILE_BYTES + 1))

    bundle = bundled(folder, "\nSee references/api.md.")

    assert "<file" not in bundle.text
    assert [warning.at("SKILL.md") for warning in bundle.warnings] == [
        (
            "SKILL.md:6:5: left out of the context: 'references/api.md' cannot be read: "
            "larger than 128 KiB"
        )
    ]


def test_files_beyond_the_limit_in_total_are_left_out(folder: Path) -> None:
    for name in "abcd":
        (folder / f"{name}.md").write_bytes(b"a" * (100 << 10))

    bundle = bundled(folder, "a.md b.md c.md d.md")

    assert bundle.text.count("<file ") == 2
    assert [warning.at("SKILL.md") for warning in bundle.warnings] == [
        "SKILL.md:5:11: left out of the context: with 'c.md' it would exceed 256 KiB"
    ]


def test_a_picture_is_not_put_into_context(folder: Path) -> None:
    (folder / "logo.png").write_bytes(b"\x89PNG\xff")

    bundle = bundled(folder, "Show logo.png.")

    assert (bundle.text, bundle.warnings) == (f"{FRONT}Show logo.png.", ())


def test_a_link_out_of_the_skill_is_not_followed(folder: Path) -> None:
    (folder.parent / "secret.md").write_text("secret", "utf-8")
    (folder / "link.md").symlink_to(folder.parent / "secret.md")

    bundle = bundled(folder, "See link.md.")

    assert "secret" not in bundle.text
    assert "leads outside the skill's folder" in bundle.warnings[0].what


def test_a_link_to_another_skill_is_no_mistake(folder: Path) -> None:
    other = folder.parent / "other" / "references"
    other.mkdir(parents=True)
    (other.parent / "SKILL.md").write_text("secret", "utf-8")
    (other / "api.md").write_text("secret", "utf-8")
    body = "See [other](../other/SKILL.md) and [its API](../other/references/api.md).\n"

    assert bundled(folder, body) == Bundle(text=FRONT + body, warnings=())


def test_a_text_in_another_encoding_is_a_warning(folder: Path) -> None:
    (folder / "references" / "old.md").write_bytes(b"caf\xe9\n")

    (warning,) = bundled(folder, "See references/old.md.\n").warnings

    assert warning.what.startswith("left out of the context: 'references/old.md' is not UTF-8 text")


def test_a_reference_that_is_missing_is_named(folder: Path) -> None:
    (warning,) = bundled(folder, "\nRead references/gone.md, and write scripts/new.py.\n").warnings

    assert (warning.where, warning.line, warning.is_hint) == ("", 6, True)
    assert warning.what == "there is no references/gone.md"


CONFLICT = "\n<<<<<<< HEAD\n# CSV\n=======\n# Tables\n>>>>>>> tables\n"


@pytest.mark.parametrize(
    ("body", "lines"), [(f"Intro.\n{CONFLICT}", [7]), (f"Resolve it:\n\n```{CONFLICT}```\n", [])]
)
def test_a_conflict_that_a_merge_has_left_is_named(body: str, lines: list[int]) -> None:
    found = [*conflicts_in(read_skill_text(FRONT + body, folder="csv"))]

    assert [each.line for each in found] == lines
    assert all(each.what.startswith("a merge conflict: ") for each in found)
