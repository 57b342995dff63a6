"""The JSON, TOML or YAML in an answer, which is a fenced block or the whole answer."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

from pytest_upskill.checks.blocks import Block, blocks, choose_units
from pytest_upskill.checks.yaml_documents import load_yaml

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
