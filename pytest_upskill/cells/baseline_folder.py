"""The folder of baseline files, and which file belongs to which cell."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote

from pytest_upskill.cells.baseline import Baseline, read_baseline
from pytest_upskill.cells.trial_group import TrialGroup


class Key(NamedTuple):
    """Key of a cell's baseline."""

    case_file: str
    """Path from the folder that holds ``.upskill``, with slashes."""
    skill: str
    model: str
    """Label of the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A baseline and its file."""

    file: Path
    baseline: Baseline
    moved: bool
    """Whether its case file no longer exists at the recorded path."""

    @property
    def key(self) -> Key:
        """Key of the cell that was recorded."""
        baseline = self.baseline
        return Key(baseline.case_file, baseline.skill, baseline.model)


@dataclass(frozen=True, slots=True)
class Baselines:
    """The stored baselines of the chosen models."""

    stored: tuple[Stored, ...] = ()

    def of(self, keys: Sequence[Key]) -> list[Baseline | None]:
        """Return the baseline of each cell, None for a cell without one.

        A baseline with the same case file and model belongs to the cell. If there is none, the
        skill may have been moved: then a baseline with the same file name, skill and model belongs
        to it, if its case file no longer exists. With several such baselines or cells there is
        no match.

        Args:
            keys: Keys of all cells of the session.
        """
        return [found.baseline if found else None for found in self._find_all(keys)]

    def unused(self, used: Sequence[Key]) -> Iterator[tuple[Stored, str]]:
        """Yield the files that can be deleted, each with the reason.

        Args:
            used: Keys of all measured cells.
        """
        taken = [found.file for found in self._find_all(used) if found]
        for each in self.stored:
            kept = self._best_match(each.key)
            if kept is not None and kept.file != each.file:
                yield each, f"{kept.file} replaces it"
            elif each.moved and each.file not in taken:
                yield each, f"{each.key.case_file} is gone"

    def _find_all(self, keys: Sequence[Key]) -> list[Stored | None]:
        own = [self._best_match(key) for key in keys]
        claims = Counter(
            _without_folder(key) for key, found in zip(keys, own, strict=True) if found is None
        )
        return [
            found or (self._find_moved(key) if claims[_without_folder(key)] == 1 else None)
            for key, found in zip(keys, own, strict=True)
        ]

    def _find_moved(self, key: Key) -> Stored | None:
        moved = [
            each
            for each in self.stored
            if each.moved and _without_folder(each.key) == _without_folder(key)
        ]
        one = len({each.key.case_file for each in moved}) == 1
        return self._best_match(moved[0].key) if one else None

    def _best_match(self, key: Key) -> Stored | None:
        """Return the file of a key; of several, by newest format, same skill, newest date."""
        same = [
            each
            for each in self.stored
            if (each.key.case_file, each.key.model) == (key.case_file, key.model)
        ]
        return max(
            same,
            key=lambda each: (
                each.baseline.format,
                each.key.skill == key.skill,
                each.baseline.date,
            ),
            default=None,
        )


def key_of(cell: TrialGroup) -> Key:
    """Return the key of a cell's baseline."""
    return Key(cell.case_file or cell.path, cell.skill, cell.model)


def baseline_file(folder: Path, case_file: str, model: str) -> Path:
    """Return the path of a baseline file: below ``folder``, the same path as the case file's.

    Args:
        folder: Folder of the baseline files.
        case_file: Path of the case file from the folder that contains ``.upskill``, with slashes.
        model: Label of the model.
    """
    return folder.joinpath(*map(_part, case_file.split("/")), _name(model))


def read_baselines(folder: Path, models: Iterable[str], project: Path | None) -> Baselines:
    """Read the baselines of all case files on the given models.

    Args:
        folder: Folder of the baseline files.
        models: Labels of the models.
        project: Folder that contains ``.upskill``, to check which case files still exist; None if
            it is unknown, so that none counts as moved.

    Raises:
        BaselineError: A baseline file cannot be used.
    """
    names = {_name(model) for model in models}
    files = [each for each in sorted(folder.rglob("*.json")) if each.name in names]
    return Baselines(tuple(_stored(folder, project, files)))


def _stored(folder: Path, project: Path | None, files: Iterable[Path]) -> Iterator[Stored]:
    for file in files:
        place = "/".join(map(unquote, file.parent.relative_to(folder).parts))
        # The folder of a case file may have the name of a baseline file.
        baseline = None if file.is_dir() else read_baseline(file, place)
        if baseline is not None:
            has_moved = (
                project is not None
                and not (project / baseline.case_file.partition("::")[0]).exists()
            )
            yield Stored(file=file, baseline=baseline, moved=has_moved)


def _part(name: str) -> str:
    """Return a path component escaped so that it cannot leave the folder; `unquote` reverts it."""
    return "%2E%2E" if name == ".." else name.replace("%", "%25")


def _name(model: str) -> str:
    quoted = quote(model, safe=" ")
    return f"%2E{quoted[1:]}.json" if quoted.startswith(".") else f"{quoted}.json"


def _without_folder(key: Key) -> tuple[str, str, str]:
    return posixpath.basename(key.case_file), key.skill, key.model
