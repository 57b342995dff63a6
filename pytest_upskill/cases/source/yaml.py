"""YAML with the line and column of every key and value, limited to values that JSON can hold."""

import re
from collections.abc import Collection
from dataclasses import replace
from typing import Any, ClassVar, Self

import yaml

from pytest_upskill.cases.source.document import (
    MAX_DEPTH,
    TOO_DEEP,
    BadFile,
    Document,
    JsonPath,
    Offsets,
    Problem,
    shown,
    unusable,
)

MAX_VALUES = 100_000
"""Maximum number of values in a document; aliases could make billions from a few lines."""

NULL = "tag:yaml.org,2002:null"
_BOOL, _INT, _FLOAT = (f"tag:yaml.org,2002:{name}" for name in ("bool", "int", "float"))
_TYPES = (NULL, _BOOL, _INT, _FLOAT)
"""Tags of values that are not text. As in JSON, a date is text."""
_MERGE = "tag:yaml.org,2002:merge"
"""The tag of ``<<``: https://yaml.org/type/merge.html."""


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # C: 10 x faster
    """Reads scalars as YAML 1.2 does, and numbers as JSON does: ``no``, 12:30 and 010 are text.

    YAML 1.1 makes false, 750 and 8 of them, which no author of a case means.
    """

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}


_Loader.add_implicit_resolver(NULL, re.compile("(null|Null|NULL|~|)$"), ["n", "N", "~", ""])
_Loader.add_implicit_resolver(_BOOL, re.compile("(true|True|TRUE|false|False|FALSE)$"), [*"tTfF"])
_Loader.add_implicit_resolver(_INT, re.compile("-?(0|[1-9][0-9]*)$"), [*"-0123456789"])
_FLOAT_TEXT = r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?$"
_Loader.add_implicit_resolver(_FLOAT, re.compile(_FLOAT_TEXT), [*"-+.0123456789"])
_Loader.add_implicit_resolver(_MERGE, re.compile("<<$"), ["<"])


class _Written(float):
    """A number that is text as it was written: the version 3.10 is not 3.1."""

    _text: str

    def __new__(cls, text: str) -> Self:
        """Keep the text."""
        made = super().__new__(cls, text)
        made._text = text
        return made

    def __str__(self) -> str:
        return self._text


_HINTS = {
    "could not find expected ':'": "quote the text, or write it as a block: 'key: |'",
    "did not find expected key": "indent it as the lines before",
    "did not find expected '-'": "indent it as the lines before",
    "found a tab character": "indent with spaces",
    "found character that cannot start any token": "quote the value, and indent with spaces",
    "found unexpected end of stream": "close the quote",
    "found undefined alias": "quote the value: it begins with '*'",
    "mapping values are not allowed": "quote a value with ': ', or indent it as the lines before",
}
"""Fixes, by the start of libyaml's message."""

_Entries = dict[str, tuple[yaml.Node, yaml.Node]]
"""Nodes of the key and the value of every entry, by key."""


def parse_yaml(text: str, *, types: Collection[str] = _TYPES) -> Document:
    """Read a YAML document into values that JSON can hold, and collect its flaws.

    Args:
        text: The document.
        types: Tags of the values that are not read as text.

    Raises:
        BadFile: It has a syntax error, too many values, or too many levels.
    """
    node = _compose(text)
    if node is None:
        raise BadFile([Problem(line=1, column=1, what="the file is empty")])
    reader = _Reader(types)
    document = Document(value=reader.value(node), text=text, offsets=reader.offsets)
    flaws = [(path, document.problem(path, what, key=True)) for path, what in reader.problems]
    return replace(document, flaws=flaws)


def _compose(text: str) -> yaml.Node | None:
    """Return the root node of a document, None if it is empty; raise BadFile."""
    try:
        # Each collection contains one of these. Too many nested ones overflow libyaml's stack.
        if sum(map(text.count, "[{-?:")) > MAX_DEPTH:
            _check_depth(text)
        return yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        raise BadFile([_syntax_problem(error)]) from None
    except yaml.reader.ReaderError as error:
        what = f"not YAML: control character U+{error.character:04X}: remove it"
        raise BadFile([Problem.in_text(text, text.find(chr(error.character)), what)]) from None


def _check_depth(text: str) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise BadFile([_problem(event.start_mark, TOO_DEEP)])


def _problem(mark: Any, what: str) -> Problem:
    return Problem(line=mark.line + 1, column=mark.column + 1, what=what)


def _syntax_problem(error: yaml.MarkedYAMLError) -> Problem:
    """Translate a syntax error of libyaml into a problem with a fix, if one is known."""
    problem = (error.problem or "").removeprefix("but ")
    hint = next((f" ({hint})" for start, hint in _HINTS.items() if problem.startswith(start)), "")
    is_unclosed = problem.endswith("end of stream") and error.context_mark
    mark = error.context_mark if is_unclosed else error.problem_mark
    return _problem(mark, f"not YAML: {problem}{hint}")


class _Reader(yaml.constructor.SafeConstructor):
    """Converter of nodes to values, which records the offsets of each value."""

    def __init__(self, types: Collection[str]) -> None:
        super().__init__()
        self._types = types
        self.offsets: dict[JsonPath, Offsets] = {}
        self.problems: list[tuple[JsonPath, str]] = []

    def value(self, node: yaml.Node, path: JsonPath = (), key_at: int | None = None) -> Any:
        """Return the value of a node.

        Args:
            node: The node.
            path: Its path in the document.
            key_at: Offset of its key in characters; None if it has no key.
        """
        if len(self.offsets) >= MAX_VALUES:
            raise BadFile([Problem(what=f"contains over {MAX_VALUES:,} values: split it")])
        at = node.start_mark.index
        self.offsets[path] = Offsets(at if key_at is None else key_at, at)
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        # compose() limits the depth of the text; aliases may nest deeper, even in a cycle.
        if len(path) >= MAX_DEPTH:
            raise BadFile([_problem(node.start_mark, TOO_DEEP)])
        if isinstance(node, yaml.SequenceNode):
            return [self.value(part, (*path, index)) for index, part in enumerate(node.value)]
        assert isinstance(node, yaml.MappingNode)
        return {
            key: self.value(part, (*path, key), key_node.start_mark.index)
            for key, (key_node, part) in self._entries(node, path).items()
        }

    def _scalar(self, node: yaml.ScalarNode, path: JsonPath) -> Any:
        if node.tag in self._types:
            try:
                value = self.construct_object(node)
                return _Written(node.value) if isinstance(value, float) else value
            except (ValueError, LookupError):
                kind = node.tag.rpartition(":")[2]
                what = f"{shown(node.value)} is not a valid {kind}: quote it, without a tag"
                self.problems.append((path, what))
        elif what := unusable(node.value):
            self.problems.append((path, what))
        return node.value

    def _entries(self, node: yaml.MappingNode, path: JsonPath) -> _Entries:
        found: _Entries = {}
        for key_node, part in node.value:
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else "?"
            if what := _bad_key(key_node):
                self.problems.append(((*path, key), what))
            elif key in found:
                line = found[key][0].start_mark.line + 1
                what = f"duplicate key (first in line {line}): remove one"
                self.problems.append(((*path, key), what))
            found[key] = key_node, part
        return found


def _bad_key(node: yaml.Node) -> str:
    """Return why a node is not a valid key, "" if it is."""
    if node.tag == _MERGE:
        return "'<<' is not read: write what it would merge in"
    if isinstance(node, yaml.ScalarNode):
        return unusable(node.value)
    return "a key must be text: quote a value that begins with '{{'"
