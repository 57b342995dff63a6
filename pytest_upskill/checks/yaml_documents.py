"""YAML that nobody trusts: no aliases that multiply without end."""

from __future__ import annotations

from typing import Any

import yaml

_MAX_ALIASES = 1000
_MAX_DEPTH = 100
_MAX_MERGED = 10_000


class _Loader(yaml.SafeLoader):
    """Counts what a few lines could make billions of.

    Not libyaml's loader: deep nesting overflows its stack, and a signal cannot interrupt it.
    """

    _aliases = 0
    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        self._aliases += self.check_event(yaml.AliasEvent)
        if self._aliases > _MAX_ALIASES:
            raise ValueError(f"it has over {_MAX_ALIASES} aliases")
        # Well before Python's own limit, which takes seconds to reach and is not always the same.
        if self._depth == _MAX_DEPTH:
            raise ValueError("nested too deeply")
        self._depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        super().flatten_mapping(node)
        if len(node.value) > _MAX_MERGED:
            raise ValueError(f"its merge keys make over {_MAX_MERGED:,} entries")


def load_yaml(text: str) -> list[Any]:
    """Read every document of a YAML stream.

    Raises:
        ValueError: It is no YAML; ``problem at line N`` where the line is known.
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
    """Read a key as YAML does, which takes ``on`` for true and ``80`` for a number."""
    try:
        key = yaml.safe_load(word)
    except (ValueError, yaml.YAMLError):
        return word
    return word if isinstance(key, dict | list | set) else key
