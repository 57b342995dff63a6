"""The JSON, TOML or YAML in an answer, which is a fenced block or the whole answer."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

import yaml

from pytest_upskill.checks.blocks import Block, blocks, choose_units

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


Kind = Literal["json", "toml", "yaml"]

_LINE = re.compile(r" ?\(?at line (\d+)(?:, column \d+)?\)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerDocument:
    """Data in an answer."""

    value: Any
    place: str
    """File name, or line of the answer."""


def read_documents(kind: Kind, text: str) -> list[AnswerDocument]:
    """Read the data in an answer, from its named files or its longest block of a format.

    If no block has a label of the format, unlabelled blocks are read; if there are no blocks at
    all, the whole answer is.

    Args:
        kind: The format.
        text: The answer.

    Raises:
        ValueError: There is no such data, or it is invalid; the message is one line.
    """
    all_blocks = blocks(text)
    labelled = choose_units(all_blocks, kind)
    chosen = labelled or choose_units(all_blocks, "")
    if not all_blocks:
        chosen = (Block(language="", name=None, code=text, line=1, closed=True),)
    try:
        documents = [
            AnswerDocument(value=value, place=block.name or f"answer line {block.line}")
            for block in chosen
            for value in _load(kind, block)
        ]
    except ValueError:
        if labelled:
            raise
        documents = []
    if kind == "yaml" and not labelled:  # any sentence is a YAML string
        documents = [each for each in documents if isinstance(each.value, dict | list)]
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
    except RecursionError:
        raise ValueError(_invalid_message(kind, block.line, "nested too deeply")) from None
    except json.JSONDecodeError as error:
        raise ValueError(_invalid_message(kind, block.line + error.lineno - 1, error.msg)) from None
    except ValueError as error:
        what = str(error)
        line_in_block = _LINE.search(what)
        line = block.line + int(line_in_block[1]) - 1 if line_in_block else block.line
        raise ValueError(_invalid_message(kind, line, _LINE.sub("", what))) from None


def _invalid_message(kind: Kind, line: int, what: str) -> str:
    return f"invalid {kind.upper()} in line {line} of the answer: {what}"


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"JSON has no {constant}")
