"""Checks of data in an answer: by a JSON Schema, or by a path to a value.

A path, such as ``general.backends`` or ``jobs."build.linux".steps[0].run``, is a sequence of steps.
Every key but the first follows a dot; a key that contains a dot, a bracket, a quote or a blank is
in single or double quotes. An index is in brackets and counts from 0, or from the end if it is
negative.
"""

import json
import re
import reprlib
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, time
from typing import Any, ClassVar, Literal, NoReturn

import yaml

from pytest_upskill.checks.blocks import Block, blocks, choose_units
from pytest_upskill.checks.cpu_limit import CheckError, call_untrusted
from pytest_upskill.checks.text import CheckResult, TextCheck, cut, failed, passed
from pytest_upskill.project.messages import counted

Step = str | int
"""A key or an index."""

_STEP = re.compile(
    r"""\[(?P<index>-?\d{1,9})\]
    |(?P<dot>\.)?(?:(?P<bare>[^\s."'\[\]]+)|'(?P<single>[^']+)'|"(?P<double>[^"]+)")""",
    re.VERBOSE,
)
_MAX_SHOWN = 70
_MAX_ITEMS = 8


class NowhereError(Exception):
    """A path that does not exist in the data."""


def parse_path(path: str) -> tuple[Step, ...]:
    """Parse a path into its steps.

    Raises:
        ValueError: The path is invalid; the message is one line with the position.
    """
    steps: list[Step] = []
    at = 0
    while at < len(path) or not steps:
        match = _STEP.match(path, at)
        if match is None or (match["index"] is None and bool(match["dot"]) is (at == 0)):
            what = "bad path at character {}: write it as in general.backends or jobs[0].'a.b'"
            raise ValueError(what.format(at + 1))
        if match["index"] is not None:
            steps.append(int(match["index"]))
        else:
            steps.append(match["bare"] or match["single"] or match["double"])
        at = match.end()
    return tuple(steps)


def follow(value: Any, path: str, as_key: Callable[[str], Any] = str) -> Any:
    """Return the value at a path.

    Args:
        value: The data.
        path: A path in the syntax of `parse_path`.
        as_key: Converts a key to another form that the data may have, such as a number in YAML.

    Raises:
        NowhereError: The path does not exist; the message says which step is missing.
        ValueError: The path is invalid.
    """
    walked = ""
    for step in parse_path(path):
        where = walked or "the top level"
        if isinstance(step, int):
            value = _item(value, step, where)
            walked += f"[{step}]"
        else:
            value = _entry(value, step, where, as_key)
            walked = f"{walked}.{step}".removeprefix(".")
    return value


def equals(found: Any, expected: Any) -> bool:
    """Return whether data equals a JSON value.

    ``9`` equals ``9.0``, a date equals its ISO 8601 text, and true does not equal 1.
    """
    match expected:
        case dict():
            return (
                isinstance(found, dict)
                and found.keys() == expected.keys()
                and all(equals(found[key], value) for key, value in expected.items())
            )
        case list():
            return (
                isinstance(found, list)
                and len(found) == len(expected)
                and all(map(equals, found, expected))
            )
        case str() if isinstance(found, date | time):
            return expected in {found.isoformat(), str(found)}
        case bool() | None:
            return found is expected
        case _:
            return not isinstance(found, bool) and bool(found == expected)


def _shown(value: Any) -> str:
    """Return a value as short text for a message, with its type if that could be ambiguous."""
    match value:
        case bool() | None:
            return json.dumps(value)
        case date() | time():
            return f"the date or time {value.isoformat()}"
    kind = "the text " if isinstance(value, str) else ""
    kind = "the number " if isinstance(value, int | float) else kind
    # Aliases in YAML may make a value huge, or infinite.
    short = reprlib.Repr()
    short.maxlevel = 4
    short.maxstring = short.maxother = _MAX_SHOWN
    return kind + cut(short.repr(value), _MAX_SHOWN)


def _item(value: Any, index: int, where: str) -> Any:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise NowhereError(f"{where} is {_shown(value)}, not a list")
    if not -len(value) <= index < len(value):
        raise NowhereError(f"no [{index}] in {where}, which has {counted(len(value), 'item')}")
    return value[index]


def _entry(value: Any, key: str, where: str, as_key: Callable[[str], Any]) -> Any:
    if not isinstance(value, Mapping):
        raise NowhereError(f"{where} is {_shown(value)}, not a table")
    for candidate in (key, as_key(key)):
        if candidate in value:
            return value[candidate]
    keys = ", ".join(map(str, list(value)[:_MAX_ITEMS])) + ", …" * (len(value) > _MAX_ITEMS)
    raise NowhereError(f"no {key!r} in {where}, which has {keys or 'no keys'}")


# The data: a fenced block of the answer, or all of it.

Kind = Literal["json", "toml", "yaml"]

_MAX_ALIASES = 1000
_MAX_DEPTH = 100


class _Loader(yaml.SafeLoader):
    """A loader with limits on what a few lines could multiply to billions.

    It is not based on libyaml, because deep nesting overflows its stack, and the signal of the
    time limit cannot interrupt it.
    """

    _aliases = 0
    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        self._aliases += self.check_event(yaml.AliasEvent)
        if self._aliases > _MAX_ALIASES:
            raise ValueError(f"it has over {_MAX_ALIASES} aliases")
        # Far below Python's recursion limit, which varies and takes seconds to reach.
        if self._depth == _MAX_DEPTH:
            raise ValueError("nested too deeply")
        self._depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1


def load_yaml(text: str) -> list[Any]:
    """Read every document of a YAML stream.

    Raises:
        ValueError: The YAML is invalid; the message ends in ``at line N`` if the line is known.
    """
    try:
        return list(yaml.load_all(text, Loader=_Loader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f" at line {mark.line + 1}" if mark else ""
        raise ValueError(f"{error.problem or error.context}{where}") from None
    except yaml.YAMLError as error:
        raise ValueError(str(error).partition("\n")[0]) from None


def as_yaml_key(word: str) -> Any:
    """Return the value that YAML reads for a key, such as True for ``on`` or 80 for ``80``."""
    try:
        key = yaml.safe_load(word)
    except (ValueError, yaml.YAMLError):
        return word
    return word if isinstance(key, dict | list | set) else key


_LINE = re.compile(r"[: ]*\(?(?:at )?line (\d+)(?:,? column \d+)?(?: \(char \d+)?\)?")


def read_documents(kind: Kind, text: str) -> list[tuple[Any, str]]:
    """Read the data in an answer, from its named files or its longest block of a format.

    If no block has a label of the format, unlabelled blocks are read; if there are no blocks at
    all, the whole answer is.

    Args:
        kind: The format.
        text: The answer.

    Returns:
        Each document, with the name of its file or its line in the answer.

    Raises:
        ValueError: There is no such data, or it is invalid; the message is one line.
    """
    all_blocks = blocks(text)
    labelled = choose_units(all_blocks, kind)
    chosen = labelled or choose_units(all_blocks, "")
    if not all_blocks:
        chosen = (Block(code=text),)
    try:
        documents = [
            (value, block.name or f"answer line {block.line}")
            for block in chosen
            for value in _load(kind, block)
        ]
    except ValueError:
        if labelled:
            raise
        documents = []
    if kind == "yaml" and not labelled:  # any sentence is a YAML string
        documents = [each for each in documents if isinstance(each[0], dict | list)]
    if not documents:
        languages = ", ".join(dict.fromkeys(each.language or "unlabelled" for each in all_blocks))
        raise ValueError(f"no {kind.upper()} in the answer (blocks: {languages or 'none'})")
    return documents


def _load(kind: Kind, block: Block) -> list[Any]:
    try:
        match kind:
            case "json":
                return [json.loads(block.code, parse_constant=_refuse)]
            case "toml":
                return [tomllib.loads(block.code)]
            case "yaml":
                return load_yaml(block.code)
    except (ValueError, RecursionError) as error:
        what = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        line_in_block = _LINE.search(what)
        line = block.line + int(line_in_block[1]) - 1 if line_in_block else block.line
        where = f"invalid {kind.upper()} in line {line} of the answer"
        raise ValueError(f"{where}: {_LINE.sub('', what)}") from None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"JSON has no {constant}")


# The checks.


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueAtPath(TextCheck):
    """A check that the answer's data, or one of its files, has a value at a path."""

    for_teacher = "path to value"

    name: Kind
    path: str
    """A path in the syntax of `pytest_upskill.checks.structure`."""
    value: Any
    """The exact value, as JSON; ``9`` equals ``9.0``."""

    def check(self, text: str) -> CheckResult:
        """Compare the value at the path.

        Raises:
            CheckError: Reading the data takes too long.
        """
        try:
            is_equal, what = call_untrusted(f"{self.name} {self.path}", _compare, self, text)
        except ValueError as error:
            return failed(self.name, f" {self.path}: {error}")
        return (passed if is_equal else failed)(self.name, f" {self.path}: {what}")


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonSchema(TextCheck):
    """A check that the answer's JSON, a block or the whole answer, is valid under a schema."""

    name: ClassVar[str] = "json_schema"
    for_teacher = "a schema"

    schema: Mapping[str, Any]
    """Draft 2020-12, without references to other documents."""

    def check(self, text: str) -> CheckResult:
        """Validate the answer's JSON.

        Raises:
            CheckError: Validating takes too long, or the schema refers to itself without end.
        """
        # Imported late: the library is slow to import, and few cases need it.
        from pytest_upskill.checks.schemas import schema_violations

        try:
            value, _ = read_documents("json", text)[-1]
        except ValueError as error:
            return failed(self.name, f": {error}")
        try:
            violations = call_untrusted(self.name, schema_violations, self.schema, value)
        except RecursionError:
            raise CheckError(
                f"{self.name}: a $ref of the schema refers to itself: fix the schema"
            ) from None
        if not violations:
            return passed(self.name, ": valid")
        more = f" ({len(violations) - 1} more)" if len(violations) > 1 else ""
        detail = "\n".join(cut(violation, 500) for violation in violations)
        return failed(self.name, f": {cut(violations[0], 160)}{more}", detail=detail)


def _compare(check: ValueAtPath, text: str) -> tuple[bool, str]:
    """Return whether a document of the answer has the value, and a phrase that says what it has."""
    as_key = as_yaml_key if check.name == "yaml" else str
    what = ""
    for value, place in read_documents(check.name, text):
        try:
            found = follow(value, check.path, as_key)
        except NowhereError as error:
            what = f"{error} ({place})"
            continue
        if equals(found, check.value):
            return True, f"is {_shown(found)} ({place})"
        what = f"is {_shown(found)}, not {_shown(check.value)} ({place})"
    return False, what
