"""YAML with the line and column of every key and value, read as safely as JSON."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import yaml

from pytest_upskill.formats.positions import MAX_DEPTH, Document, JsonPath
from pytest_upskill.formats.problems import BadFile, Problem

MAX_VALUES = 100_000
"""Values of a document; by aliases a few lines could make billions."""

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # without libyaml, some ten times slower
_TYPES = tuple(f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float"))
"""What is not text, as in JSON; a date is text."""


def read_yaml(text: str) -> Document:
    """Read a YAML document into what JSON could hold too.

    Raises:
        BadFile: With the first error of syntax, or every duplicate key.
    """
    node = compose(text, max_depth=MAX_DEPTH)
    if node is None:
        raise BadFile([Problem(line=1, column=1, what="the file is empty")])
    reader = _Reader()
    try:
        value = reader.value(node)
    except ValueError as error:  # such as a number that Python has no room for
        raise BadFile([Problem(what=f"not YAML: {error}")]) from None
    line_starts = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
    document = Document(value=value, places=reader.places, line_starts=line_starts)
    if reader.duplicates:
        what = "duplicate key: remove one"
        raise BadFile(document.problem(path, what, key=True) for path in reader.duplicates)
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
        mark = error.problem_mark or error.context_mark
        what = f"not YAML: {error.problem}{_hint(error, text)}"
        raise BadFile([_problem(mark, what, first_line)]) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, text.find(chr(error.character))) + first_line
        what = f"not YAML: control character U+{error.character:04X}: remove it"
        raise BadFile([Problem(line=line, column=1, what=what)]) from None


def _check_depth(text: str, max_depth: int, first_line: int) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > max_depth:
            what = f"nested over {max_depth} levels deep"
            raise BadFile([_problem(event.start_mark, what, first_line)])


def _problem(mark: Any, what: str, first_line: int) -> Problem:
    return Problem(line=mark.line + first_line, column=mark.column + 1, what=what)


def _hint(error: yaml.MarkedYAMLError, text: str) -> str:
    problem, mark = error.problem or "", error.problem_mark
    if problem.startswith("mapping values are not allowed"):
        return " (quote the value: it holds ': ')"
    if "cannot start any token" in problem and mark:
        character = text[mark.index : mark.index + 1]
        tab = character == "\t"
        return f" ({'indent with spaces' if tab else f'quote the value: it has {character!r}'})"
    return ""


class _Reader(yaml.constructor.SafeConstructor):
    """Makes values of nodes, and notes where each stands."""

    def __init__(self) -> None:
        super().__init__()
        self.places: dict[JsonPath, tuple[int, int]] = {}
        self.duplicates: list[JsonPath] = []

    def value(self, node: yaml.Node, path: JsonPath = (), key_at: int | None = None) -> Any:
        """Make the value of ``node``, which is at ``path``."""
        if len(self.places) >= MAX_VALUES:
            raise BadFile([Problem(what=f"holds over {MAX_VALUES:,} values: split it")])
        at = node.start_mark.index
        self.places[path] = at if key_at is None else key_at, at
        if isinstance(node, yaml.SequenceNode):
            return [self.value(part, (*path, index)) for index, part in enumerate(node.value)]
        if isinstance(node, yaml.MappingNode):
            return self._object(node, path)
        return self.construct_object(node) if node.tag in _TYPES else node.value

    def _object(self, node: yaml.MappingNode, path: JsonPath) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key_node, part in node.value:
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else "?"
            if key in found:
                self.duplicates.append((*path, key))
            found[key] = self.value(part, (*path, key), key_node.start_mark.index)
        return found
