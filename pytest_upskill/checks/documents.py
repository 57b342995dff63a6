"""The JSON, TOML or YAML in an answer: a fenced block of it, or the whole answer.

Slow to import, as it parses Markdown: only checks that need it pay for it.
"""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

from pytest_upskill.checks.blocks import Block, blocks, choose
from pytest_upskill.checks.yaml_documents import load_yaml

Kind = Literal["json", "toml", "yaml"]

_LINE = re.compile(r" ?\(?at line (\d+)(?:, column \d+)?\)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """Data that an answer holds."""

    value: Any
    place: str
    """Where it stands in the answer."""


def read_documents(kind: Kind, text: str) -> list[Document]:
    """Read the data of an answer: from its files of that kind, else from its longest block.

    A block without a label, and an answer without blocks, is read too where none is labelled.

    Raises:
        ValueError: There is none, or it is broken; one line says where.
    """
    found = blocks(text)
    labelled = choose(found, kind)
    whole = Block(language="", name=None, code=text, line=1, closed=True)
    chosen = labelled or choose(found, "") or (whole,) * (not found)
    try:
        documents = [
            Document(value=value, place=block.name or f"answer line {block.line}")
            for block in chosen
            for value in _load(kind, block)
        ]
    except ValueError:
        if labelled:
            raise
        documents = []
    if kind == "yaml" and not labelled:  # any sentence is YAML, though not data
        documents = [each for each in documents if isinstance(each.value, dict | list)]
    if not documents:
        languages = ", ".join(dict.fromkeys(each.language or "unlabelled" for each in found))
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
        raise ValueError(_broken(kind, block.line, "nested too deeply")) from None
    except json.JSONDecodeError as error:
        raise ValueError(_broken(kind, block.line + error.lineno - 1, error.msg)) from None
    except ValueError as error:
        what = str(error)
        told = _LINE.search(what)
        line = block.line + int(told[1]) - 1 if told else block.line
        raise ValueError(_broken(kind, line, _LINE.sub("", what))) from None


def _broken(kind: Kind, line: int, what: str) -> str:
    return f"not {kind.upper()} in line {line} of the answer: {what}"


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"JSON has no {constant}")
