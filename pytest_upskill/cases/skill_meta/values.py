"""Types of the values in a ``skill_meta.json``, with their validation messages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo

from pytest_upskill.cases.skill_files import SkillFolder
from pytest_upskill.cases.source.case_ids import MAX_ID, id_problem
from pytest_upskill.cases.source.document import BadFile, shown
from pytest_upskill.cases.source.files import MAX_BUNDLE_BYTES, read_text, stay_inside
from pytest_upskill.cases.source.formats import read_json
from pytest_upskill.checks.code import check_file
from pytest_upskill.checks.extensions import Extensions
from pytest_upskill.checks.files import MAX_BYTES, WorkspaceFile, is_safe_name
from pytest_upskill.checks.structure import parse_path
from pytest_upskill.checks.text import pattern_problem
from pytest_upskill.project.messages import did_you_mean

_ID = r"^(?!(trigger-)?gate$)(?!\s)(?!.*(::|[\[\]]|\s$)).+$"


def _as_list(value: object) -> object:
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return value
    raise wrong_value(value, "a string or a list of strings")


def _without(problem_of: Callable[[str], str | None]) -> AfterValidator:
    """Return a validator of texts that have no problem."""

    def check(value: str) -> str:
        if problem := problem_of(value):
            raise ValueError(problem)
        return value

    return AfterValidator(check)


def _bad_pattern(pattern: str) -> str | None:
    problem = pattern_problem(pattern)
    return problem and f"bad pattern: {problem}"


def _check_path(path: str) -> str:
    parse_path(path)
    return path


@dataclass(frozen=True, slots=True)
class Around:
    """What the validators of a case file need to know; pydantic's context."""

    skill: SkillFolder | None
    """The skill that the cases belong to; None if they are in no file."""
    extensions: Extensions

    @classmethod
    def of(cls, info: ValidationInfo) -> Around:
        """Return the context of a validation."""
        assert isinstance(info.context, cls)
        return info.context

    def folder(self, name: str) -> SkillFolder:
        """Return the folder of the skill, in or beside which a file is named."""
        if self.skill is None:
            what = "there are no files beside these cases: write the content here"
            raise ValueError(f"{name!r}: {what}")
        return self.skill


def _read_json(folder: Path, name: str) -> Any:
    stay_inside(folder / name, folder, shown=name)
    try:
        return read_json(read_text(folder / name)).value
    except BadFile as error:
        raise ValueError(error.problems[0].at(name)) from None


def _check_language(value: str, info: ValidationInfo) -> str:
    extensions = Around.of(info).extensions
    language = extensions.language(value)
    if language is None:
        known = extensions.known_languages
        raise ValueError(f"unknown language {value!r}{suggestion(value, known)}")
    return language


def _check_runnable(value: str, info: ValidationInfo) -> str:
    language = _check_language(value, info)
    runnable = tuple(sorted(Around.of(info).extensions.runnable))
    if language not in runnable:
        raise ValueError(f"{language} cannot be run: write {' or '.join(runnable)}")
    return language


def _read_schema(value: object, info: ValidationInfo) -> object:
    # Imported late: the schema library is slow to import, and few cases need it.
    from pytest_upskill.checks.schemas import check_schema

    if isinstance(value, str):
        value = _read_json(Around.of(info).folder(value).beside, value)
    if not isinstance(value, dict):
        raise wrong_value(value, "a JSON Schema (an object) or the path of one")
    if not value:
        raise ValueError("must not be empty: every answer would be valid")
    check_schema(value)
    return value


def _workspace_name_problem(name: str) -> str | None:
    return None if is_safe_name(name) else "must be a path in the workspace, such as 'data/in.csv'"


def _read_workspace(value: object, info: ValidationInfo) -> object:
    if isinstance(value, str):
        return _copies("", value, info)
    return _files_in(value, "an object of names and texts, or the path of a folder", info)


def _read_inputs(value: object, info: ValidationInfo) -> object:
    names = [value] if isinstance(value, str) else value
    if isinstance(names, list) and names and all(isinstance(name, str) for name in names):
        return tuple(
            file for name in names for file in Around.of(info).folder(name).read_files(name)
        )
    return _files_in(value, "paths, or an object of names and texts", info)


def _read_bundle(value: object, info: ValidationInfo) -> object:
    if isinstance(value, bool):
        return value
    if not isinstance(value, str):
        raise wrong_value(value, "true or the path of a git bundle")
    files = Around.of(info).folder(value).read_files(value, MAX_BUNDLE_BYTES)
    if len(files) != 1 or not files[0].content.startswith(b"# v"):
        raise ValueError(f"{value!r} is not a git bundle: write one with git bundle create")
    return files[0]


def _files_in(value: object, wanted: str, info: ValidationInfo) -> tuple[WorkspaceFile, ...]:
    """Return the files that an object of a case has: texts, and copies of other files."""
    if not isinstance(value, dict):
        raise wrong_value(value, wanted)
    files: list[WorkspaceFile] = []
    for name, given in sorted(value.items()):
        if problem := _workspace_name_problem(name):
            raise ValueError(f"{name!r} {problem}")
        if isinstance(given, str):
            files.append(WorkspaceFile(name=name, text=given))
        elif (
            isinstance(given, dict) and [*map(type, given.values())] == [str] and "source" in given
        ):
            files += _copies(name, given["source"], info)
        else:
            what = f'must be text or {{"source": "path"}}, got {shown(given)}'
            raise ValueError(f"{name}: {what}")
    if sum(len(file.text) for file in files) > MAX_BYTES:
        raise ValueError(f"is larger than {MAX_BYTES >> 10} KiB")
    return tuple(files)


def _copies(name: str, source: str, info: ValidationInfo) -> tuple[WorkspaceFile, ...]:
    """Return copies of a file, or of all files of a folder, under another name."""
    files = Around.of(info).folder(source).read_copies(name, source)
    if not files:
        raise ValueError(f"{source!r} contains no files but those of the skill and its cases")
    return files


def suggestion(word: str, known: tuple[str, ...]) -> str:
    """Return the known word closest to ``word``, else all known words, in brackets."""
    return did_you_mean(word, known) or f" (known: {', '.join(sorted(known))})"


def wrong_value(value: object, wanted: str) -> ValueError:
    """Return an error that says what a value must be."""
    return ValueError(f"must be {wanted}, got {shown(value)}")


Text = Annotated[str, Field(min_length=1)]
_Each = TypeVar("_Each", bound=str)
_OneOrMore = Annotated[
    list[_Each],
    Field(min_length=1),
    BeforeValidator(
        _as_list, json_schema_input_type=Text | Annotated[list[Text], Field(min_length=1)]
    ),
]
Texts = _OneOrMore[Text]
Pattern = Annotated[Text, _without(_bad_pattern)]
Patterns = _OneOrMore[Pattern]
WorkspaceName = Annotated[Text, _without(_workspace_name_problem)]
FileNames = _OneOrMore[WorkspaceName]
_FilesByName = dict[Text, str | dict[Literal["source"], Text]]
WorkspaceFiles = Annotated[
    Any, BeforeValidator(_read_workspace, json_schema_input_type=Text | _FilesByName)
]
InputFiles = Annotated[
    Any, BeforeValidator(_read_inputs, json_schema_input_type=Text | list[Text] | _FilesByName)
]
Repository = Annotated[Any, BeforeValidator(_read_bundle, json_schema_input_type=bool | Text)]
Values = Annotated[dict[Annotated[str, AfterValidator(_check_path)], Any], Field(min_length=1)]
Rate = Annotated[float, Field(ge=0, le=1)]
Id = Annotated[
    Text, Field(max_length=MAX_ID, json_schema_extra={"pattern": _ID}), _without(id_problem)
]
Language = Annotated[str, AfterValidator(_check_language)]
Runnable = Annotated[str, AfterValidator(_check_runnable)]
HeaderName = Annotated[str, _without(check_file)]
Schema = Annotated[
    dict[str, Any],
    BeforeValidator(
        _read_schema, json_schema_input_type=Text | Annotated[dict[str, Any], Field(min_length=1)]
    ),
]
