"""Skills that share a name, told apart by their folders."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import TypeVar

from pytest_upskill.cells.trial_group import TrialGroup

G = TypeVar("G", bound=TrialGroup)


def with_places(cells: Iterable[G]) -> list[G]:
    """Return the cells, with ``place`` set for skills that share a name."""
    cells = list(cells)
    paths = {
        cell.skill: list(dict.fromkeys(each.path for each in cells if each.skill == cell.skill))
        for cell in cells
    }
    return [
        replace(cell, place=_place(cell.path, paths[cell.skill]) if paths[cell.skill][1:] else "")
        for cell in cells
    ]


def _place(path: str, paths: Collection[str]) -> str:
    """Return the folder of a case file, or its path if the folder has another one of the name."""
    folder = _folder(path)
    alone = sum(_folder(other) == folder for other in paths) == 1
    return (folder or ".") if alone else path


def _folder(path: str) -> str:
    """Return the folder of the case file that the node id of a skill or a file begins with."""
    return posixpath.dirname(path.partition("::")[0])
