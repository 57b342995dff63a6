"""YAML with the line and column of every key and value, read as safely as JSON."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate
from typing import Any

import yaml

from pytest_upskill.formats.source.json import (
    MAX_DEPTH,
    THOUSANDS,
    Document,
    JsonPath,
    too_deep,
    unusable,
)
from pytest_upskill.formats.source.problems import BadFile, Problem, shown

MAX_VALUES = 100_000
"""Values of a document; by aliases a few lines could make billions."""

MAX_NUMBER = 1000
"""Characters of a number that Python reads for sure."""

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # without libyaml, some ten times slower
_TYPES = tuple(f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float"))
"""What is not text, as in JSON; a date is text."""
_MERGE = "tag:yaml.org,2002:merge"
"""The tag of ``<<``: https://yaml.org/type/merge.html."""
_TOO_MANY = Problem(what=f"holds over {MAX_VALUES:,} values: split it")

_HINTS = {
    "block sequence entries are not allowed": "begin the list in a line of its own",
    "could not find expected ':'": "quote the text, or write it as a block: 'key: |'",
    "did not find expected '-'": "indent it as the lines before",
    "did not find expected key": "indent it as the lines before",
    "found another document": "make them one list",
    "found undefined alias": "quote the value: it begins with '*'",
    "found unexpected end of stream": "close the quote",
    "found unknown escape character": "write the backslash twice, or single quotes",
    "mapping values are not allowed": "quote the value: it holds ': '",
}
"""Cures, by how libyaml begins to say what is wrong."""

_Entries = dict[str, tuple[yaml.Node, yaml.Node]]
"""Key and value of every entry, by key."""


def parse_yaml(text: str) -> Document:
    """Read a YAML document into what JSON could hold too, and note its flaws beside their places.

    Raises:
        BadFile: It has an error of syntax, or is nested too deeply.
    """
    node = compose(text, max_depth=MAX_DEPTH)
    if node is None:
        raise BadFile([Problem(line=1, column=1, what="the file is empty")])
    reader = _Reader()
    value = reader.value(node)
    line_starts = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
    flaws: list[tuple[JsonPath, Problem]] = []
    document = Document(value=value, places=reader.places, line_starts=line_starts, flaws=flaws)
    flaws += [(path, document.problem(path, what, key=True)) for path, what in reader.problems]
    return document


def compose(text: str, *, max_depth: int, first_line: int = 1) -> yaml.Node | None:
    """Compose the nodes of a YAML document; None where it is empty.

    Args:
        text: The document.
        max_depth: Collections inside each other; more could overflow libyaml's stack.
        first_line: Line of the file that the document begins in, from 1.

    Raises:
        BadFile: It is no YAML, or nested too deeply.
    """
    try:
        if sum(map(text.count, "[{-?:")) > max_depth:  # each collection begins with one
            _check_depth(text, max_depth, first_line)
        return yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        raise BadFile([_syntax_problem(error, text, first_line)]) from None
    except yaml.reader.ReaderError as error:
        what = f"not YAML: control character U+{error.character:04X}: remove it"
        problem = Problem.in_text(text, text.find(chr(error.character)), what)
        raise BadFile([replace(problem, line=problem.line + first_line - 1)]) from None


def _check_depth(text: str, max_depth: int, first_line: int) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > max_depth:
            raise BadFile([_problem(event.start_mark, too_deep(max_depth), first_line)])


def _problem(mark: Any, what: str, first_line: int = 1) -> Problem:
    return Problem(line=mark.line + first_line, column=mark.column + 1, what=what)


def _syntax_problem(error: yaml.MarkedYAMLError, text: str, first_line: int) -> Problem:
    """Say what libyaml cannot read, and the cure."""
    said, begin = (error.problem or "").removeprefix("but "), error.context_mark
    mark = error.problem_mark or begin
    hint = next((hint for start, hint in _HINTS.items() if said.startswith(start)), "")
    if begin and said.endswith("end of stream"):
        mark = begin  # the quote that was never closed
    elif begin and said.startswith("did not find expected ','"):
        hint = f"it begins in line {begin.line + first_line}"
    elif mark and "cannot start any token" in said:
        character = text[mark.index : mark.index + 1]
        tab = character == "\t"
        hint = "indent with spaces" if tab else f"quote the value: it has {character!r}"
    return _problem(mark, f"not YAML: {said}{f' ({hint})' if hint else ''}", first_line)


class _Reader(yaml.constructor.SafeConstructor):
    """Makes values of nodes, and notes where each stands."""

    def __init__(self) -> None:
        super().__init__()
        self.places: dict[JsonPath, tuple[int, int]] = {}
        self.problems: list[tuple[JsonPath, str]] = []
        self._entries_of: dict[yaml.Node, _Entries] = {}
        self._merged = 0

    def value(self, node: yaml.Node, path: JsonPath = (), key_at: int | None = None) -> Any:
        """Make the value of ``node``, which is at ``path``."""
        if len(self.places) >= MAX_VALUES:
            raise BadFile([_TOO_MANY])
        at = node.start_mark.index
        self.places[path] = at if key_at is None else key_at, at
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        # By aliases, which may even lead in a circle: of the text itself it is known already.
        if len(path) >= MAX_DEPTH:
            raise BadFile([_problem(node.start_mark, too_deep(MAX_DEPTH))])
        if isinstance(node, yaml.SequenceNode):
            return [self.value(part, (*path, index)) for index, part in enumerate(node.value)]
        assert isinstance(node, yaml.MappingNode)
        return {
            key: self.value(part, (*path, key), key_node.start_mark.index)
            for key, (key_node, part) in self._entries(node, path).items()
        }

    def _scalar(self, node: yaml.ScalarNode, path: JsonPath) -> Any:
        if node.tag in _TYPES:
            try:
                return self.construct_object(node)
            except (ValueError, LookupError):
                self.problems.append((path, _misread(node)))
        elif what := unusable(node.value):
            self.problems.append((path, what))
        return node.value

    def _entries(self, node: yaml.MappingNode, path: JsonPath) -> _Entries:
        """Find the entries of an object: its own, then those of what ``<<`` merges into it."""
        if node in self._entries_of:
            return self._entries_of[node]
        found = self._entries_of[node] = {}
        merged: list[yaml.MappingNode] = []
        for key_node, part in node.value:
            if key_node.tag == _MERGE:
                merged += _to_merge(part)
                continue
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else "?"
            if what := _bad_key(key_node) or ("duplicate key: remove one" if key in found else ""):
                self.problems.append(((*path, key), what))
            found[key] = key_node, part
        for other in merged:
            entries = self._entries(other, path)
            self._merged += len(entries)
            if self._merged > MAX_VALUES:
                raise BadFile([_TOO_MANY])
            for key, entry in entries.items():
                found.setdefault(key, entry)
        return found


def _bad_key(node: yaml.Node) -> str:
    """Say why a node is no key; empty where it is one."""
    if isinstance(node, yaml.ScalarNode):
        return unusable(node.value)
    return "a key must be text: quote a value that begins with '{{'"


def _misread(node: yaml.ScalarNode) -> str:
    """Say why a value is not of the type that its form or its tag gives it."""
    if len(node.value) > MAX_NUMBER:
        return THOUSANDS
    return f"{shown(node.value)} is no {node.tag.rpartition(':')[2]}: remove the tag"


def _to_merge(node: yaml.Node) -> list[yaml.MappingNode]:
    """List the objects that a ``<<`` names, the weakest last."""
    nodes = node.value if isinstance(node, yaml.SequenceNode) else [node]
    if not all(isinstance(each, yaml.MappingNode) for each in nodes):
        what = "'<<' takes an object, or a list of objects, to merge in"
        raise BadFile([_problem(node.start_mark, what)])
    return list(nodes)
