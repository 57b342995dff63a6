"""Reading of untrusted YAML, with limits on aliases, depth and merge keys."""

from __future__ import annotations

from typing import Any

import yaml

_MAX_ALIASES = 1000
_MAX_DEPTH = 100
_MAX_MERGED = 10_000


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

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        super().flatten_mapping(node)
        if len(node.value) > _MAX_MERGED:
            raise ValueError(f"its merge keys produce over {_MAX_MERGED:,} entries")


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
