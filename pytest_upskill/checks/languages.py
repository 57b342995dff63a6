"""Names of languages, by labels of code fences and suffixes of files."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Known(NamedTuple):
    """What is known of a built-in language."""

    labels: tuple[str, ...]
    """Labels of code fences, and suffixes of files."""
    builds: bool = True
    """Whether there are ``compile`` checks of it."""
    runs: bool = False
    """Whether there are ``run`` checks of it."""


_KNOWN: Mapping[str, Known] = {
    "c": Known(("c", "c89", "c99", "c11", "c17", "c23")),
    "cpp": Known(("cpp", "c++", "cc", "cxx", "hpp", "h++", "hxx", "h", "cpp17", "cpp20", "cpp23")),
    "cuda": Known(("cuda", "cu", "cuh", "cuda-cpp", "cuda-c++", "cuda-c", "cudacpp", "nvcc")),
    "json": Known(("json", "jsonc"), builds=False),
    "python": Known(("python", "py", "python3", "py3"), runs=True),
    "toml": Known(("toml",), builds=False),
    "yaml": Known(("yaml", "yml"), builds=False),
}

LANGUAGES = tuple(name for name, known in _KNOWN.items() if known.builds)
"""Built-in languages of ``compile`` checks."""
RUNNABLE = frozenset(name for name, known in _KNOWN.items() if known.runs)
"""Built-in languages of ``run`` checks."""

_OF_LABEL: Mapping[str, str] = MappingProxyType(
    {label: language for language, known in _KNOWN.items() for label in known.labels}
)
HEADER_SUFFIXES = frozenset({"h", "hpp", "hh", "hxx", "h++", "cuh", "inl", "inc"})
"""Suffixes of files that are included, not compiled on their own."""


def canonical(language: str) -> str | None:
    """Return the name in `LANGUAGES` of a language, as ``"cpp"`` for ``"c++"``, None if unknown."""
    found = _OF_LABEL.get(language.strip().lower())
    return found if found in LANGUAGES else None


def of_label(label: str) -> str:
    """Return the language of a fence's label; for an unknown label, the label in lower case."""
    return _OF_LABEL.get(label.lower(), label.lower())


def of_file(name: str) -> str | None:
    """Return the language of a file by its suffix, None if it is unknown."""
    return (
        _OF_LABEL.get(name.rpartition("/")[2].rpartition(".")[2].lower()) if "." in name else None
    )
