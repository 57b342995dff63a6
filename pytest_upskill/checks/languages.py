"""Names of languages: what a fence's label or a file's suffix stands for."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

LANGUAGES = ("c", "cpp", "cuda", "python")
"""What a ``compile`` check can ask for."""
RUNNABLE = frozenset({"python"})
"""What a ``run`` check can ask for."""

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
"""Files of the C family that are included, not compiled on their own."""


def canonical(language: str) -> str | None:
    """Tell the one of `LANGUAGES` that ``language`` means, as ``"c++"`` means ``"cpp"``.

    Returns:
        None where no compile check knows it.
    """
    found = _OF_LABEL.get(language.strip().lower())
    return found if found in LANGUAGES else None


def of_label(label: str) -> str:
    """Tell the language of a fence's label; a label nobody knows is its own language."""
    return _OF_LABEL.get(label.lower(), label.lower())


def of_file(name: str) -> str | None:
    """Tell the language of a file by its suffix, None where that tells nothing."""
    return (
        _OF_LABEL.get(name.rpartition("/")[2].rpartition(".")[2].lower()) if "." in name else None
    )
