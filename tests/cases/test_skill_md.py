"""SKILL.md: what is read, what is refused, and what is only a warning."""

from __future__ import annotations

import pytest

from pytest_upskill.cases.skill_md import SkillText, read_skill_text
from pytest_upskill.cases.source.document import BadFile

GOOD = "name: csv\ndescription: Reads CSV.\n"
NO_COLON = "mapping values are not allowed in this context"
COLON = "(quote a value with ': ', or indent it as the lines before)"
NO_TOKEN = "found character that cannot start any token"


def read(frontmatter: str, *, body: str = "\n# CSV\n", folder: str = "csv") -> SkillText:
    return read_skill_text(f"---\n{frontmatter}---\n{body}", folder=folder)


def refusal(text: str) -> list[str]:
    with pytest.raises(BadFile) as caught:
        read_skill_text(text, folder="csv")
    return [problem.at("f") for problem in caught.value.problems]


def warnings(frontmatter: str, *, folder: str = "csv") -> list[str]:
    return [warning.at("f") for warning in read(frontmatter, folder=folder).warnings]


def test_a_model_gets_the_whole_file() -> None:
    skill = read(GOOD, body="a --- b\n---\nend")

    assert skill.name == "csv"
    assert skill.text == f"---\n{GOOD}---\na --- b\n---\nend"
    assert skill.warnings == ()


@pytest.mark.parametrize("newline", ["\r\n", "\r"])
def test_line_breaks_of_every_kind_are_the_same(newline: str) -> None:
    text = f"---\n{GOOD}---\n\nbody\n"

    skill = read_skill_text(text.replace("\n", newline), folder="csv")

    assert skill == read_skill_text(text, folder="csv")
    assert skill.text == text


@pytest.mark.parametrize(
    "frontmatter",
    [
        GOOD + "license: MIT\ncompatibility: any\nallowed-tools: Bash Read\n",
        GOOD + "metadata:\n  version: 1.10\n  draft: yes\n",
        GOOD + "model: haiku\nargument-hint: '[file]'\nhooks: {a: [b]}\npaths: [a, b]\n",
        "name: 'csv'\ndescription: >\n  Reads\n  CSV: all of it.\n",
        "# why\nname: csv\ndescription: |\n  Reads.\n\n  Writes.\n",
    ],
)
def test_keys_of_the_specification_and_of_claude_code_are_no_departure(frontmatter: str) -> None:
    assert warnings(frontmatter) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "f:1:1: no frontmatter: the file must begin with a line '---', then 'name: …'"),
        ("# CSV\n---\nname: csv\n---\n",
         "f:1:1: no frontmatter: the file must begin with a line '---', then 'name: …'"),
        (f"---\n{GOOD}# CSV\n", "f:1:1: the frontmatter has no end: close it with a line '---'"),
        (f"---\n{GOOD}---- \n", "f:1:1: the frontmatter has no end: close it with a line '---'"),
        ("---\n---\n", "f:2:1: the frontmatter must contain lines such as 'name: …'"),
        ("---\n- name\n---\n", "f:2:1: the frontmatter must contain lines such as 'name: …'"),
        ("---\nname: csv\n---\n", "f:1:1: description: missing from the frontmatter"),
        ("---\nname: csv\ndescription:\n---\n", "f:3:13: description: must not be empty"),
        ("---\nname: csv\ndescription: ' '\n---\n", "f:3:14: description: must not be empty"),
        ("---\nname: ~\ndescription: a\n---\n", "f:2:7: name: must not be empty"),
        ("---\nname: [csv]\ndescription: a\n---\n", "f:2:7: name: must be text: quote it"),
        ('---\nname: "a\\nb"\ndescription: a\n---\n',
         "f:2:7: name: must be one line of printable characters"),
        ("---\nmetadata:\n\ta: b\n---\n",
         f"f:3:1: not YAML: {NO_TOKEN} (quote the value, and indent with spaces)"),
        ("---\nname: [csv\n---\n",
         "f:3:1: not YAML: did not find expected ',' or ']'"),
        ("---\nname: *csv\n---\n",
         "f:2:7: not YAML: found undefined alias (quote the value: it begins with '*')"),
        ("---\nname: csv\ndescription: a\x07\n---\n",
         "f:3:15: not YAML: control character U+0007: remove it"),
        ("---\na: " + "[" * 200 + "\n---\n",
         "f:2:103: nested more than 100 levels deep: flatten it"),
        ("---\na: " + "[" * 100_000 + "\n---\n",
         "f:2:1003: not YAML: exceeded maximum nesting depth"),
        (f"---\n{GOOD}---\na\n\0", "f:6:1: a NUL character: save the file as UTF-8"),
    ],
)  # fmt: skip
def test_a_file_that_no_agent_can_load_is_refused(text: str, problem: str) -> None:
    assert refusal(text) == [problem]


def test_name_and_description_are_both_missed_at_once() -> None:
    assert refusal("---\nlicense: MIT\n---\n") == [
        "f:1:1: description: missing from the frontmatter",
        "f:1:1: name: missing from the frontmatter",
    ]


@pytest.mark.parametrize(
    ("frontmatter", "warning"),
    [
        ("name: CSV\ndescription: a\n",
         "f:2:7: name: must be lower-case letters and digits, with single hyphens between"),
        ("name: c--v\ndescription: a\n",
         "f:2:7: name: must be lower-case letters and digits, with single hyphens between"),
        ("name: tsv\ndescription: a\n", "f:2:7: name: must be the name of its folder, 'csv'"),
        (f"name: {'a' * 65}\ndescription: a\n", ("f:2:7: name: has 65 characters; at most 64 are "
                                                "allowed")),
        (f"name: csv\ndescription: {'a' * 1025}\n",
         "f:3:14: description: has 1,025 characters; at most 1,024 are allowed"),
        (f"{GOOD}compatibility: {'a' * 501}\n",
         "f:4:16: compatibility: has 501 characters; at most 500 are allowed"),
        (f"{GOOD}allowed-tools: [Bash, Read]\n",
         "f:4:16: allowed-tools: must be text, tools separated by spaces"),
        (f"{GOOD}license: [MIT]\n", "f:4:10: license: must be text"),
        (f"{GOOD}metadata: [a]\n", "f:4:11: metadata: must map text to text"),
        (f"{GOOD}metadata: {{a: [b]}}\n", "f:4:11: metadata: must map text to text"),
        (f"{GOOD}version: 1.0\n",
         "f:4:1: version: unknown key: the specification keeps such entries under 'metadata'"),
        (f'{GOOD}"a\\nb": 1\n',
         "f:4:1: [\"a\\nb\"]: unknown key: the specification keeps such entries under 'metadata'"),
        (f"{GOOD}description: Writes CSV.\n",
         "f:4:1: description: duplicate key (first in line 3): remove one"),
    ],
)  # fmt: skip
def test_a_departure_from_the_specification_is_a_warning(frontmatter: str, warning: str) -> None:
    assert warnings(frontmatter) == [warning]


@pytest.mark.parametrize(
    ("value", "warning"),
    [
        ("Reads: CSV's", f"f:3:19: not YAML: {NO_COLON} {COLON}"),
        ("@csv", f"f:3:14: not YAML: {NO_TOKEN} (quote the value, and indent with spaces)"),
        (
            "\n  Reads\n  CSV: it's\n  quick",
            f"f:5:6: not YAML: {NO_COLON} {COLON}",
        ),
    ],
)  # fmt: skip
def test_a_value_that_lacks_its_quotes_is_text_as_agents_take_it(value: str, warning: str) -> None:
    frontmatter = f"name: csv\ndescription: {value}\nmetadata:\n  a: b\n"

    assert warnings(frontmatter) == [warning]


def test_a_comment_may_follow_the_end_of_the_frontmatter() -> None:
    assert warnings(f"{GOOD}--- # the body follows\n") == []


def test_the_name_of_a_folder_may_be_spelled_in_another_normal_form() -> None:
    assert warnings("name: u\u0308ben\ndescription: a\n", folder="\u00fcben") == []
