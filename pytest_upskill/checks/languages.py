"""Names of languages, by labels of code fences and suffixes of files."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

LANGUAGES = ("c", "cpp", "cuda", "python")
"""Built-in languages of ``compile`` checks."""
RUNNABLE = frozenset({"python"})
"""Built-in languages of ``run`` checks."""

_LABELS: Mapping[str, tuple[str, ...]] = {
    "c": ("c", "c89", "c99", "c11", "c17", "c23"),
    "cpp": ("cpp", "c++", "cc", "cxx", "hpp", "h++", "hxx", "h", "cpp17", "cpp20", "cpp23"),
    "cuda": ("cuda", "cu", "cuh", "cuda-cpp", "cuda-c++", "cuda-c", "cudacpp", "nvcc"),
    "json": ("json", "jsonc"),
    "python": ("python", "py", "python3", "py3"),
    "toml": ("toml",),
    "yaml": ("yaml", "yml"),
}
_OF_LABEL: Mapping[str, str] = MappingProxyType(
    {label: language for language, labels in _LABELS.items() for label in labels}
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
