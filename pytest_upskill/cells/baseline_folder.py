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


class BaselineKey(NamedTuple):
    """Key of a cell's baseline."""

    case_file: str
    """Path from the folder that holds ``.upskill``, with slashes."""
    skill: str
    model: str
    """Label of the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBaseline:
    """A baseline and its file."""

    file: Path
    baseline: Baseline
    moved: bool
    """Whether its case file no longer exists at the recorded path."""

    @property
    def key(self) -> BaselineKey:
        """Key of the cell that was recorded."""
        baseline = self.baseline
        return BaselineKey(baseline.case_file, baseline.skill, baseline.model)


@dataclass(frozen=True, slots=True)
class Baselines:
    """The stored baselines of the chosen models."""

    stored: tuple[StoredBaseline, ...] = ()

    def of(self, keys: Sequence[BaselineKey]) -> list[Baseline | None]:
        """Return the baseline of each cell, None for a cell without one.

        A baseline with the same case file and model belongs to the cell. If there is none, the
        skill may have been moved: then a baseline with the same file name, skill and model belongs
        to it, if its case file no longer exists. With several such baselines or cells there is
        no match.

        Args:
            keys: Keys of all cells of the session.
        """
        return [stored.baseline if stored else None for stored in self._find_all(keys)]

    def unused(self, used: Sequence[BaselineKey]) -> Iterator[tuple[StoredBaseline, str]]:
        """Yield the files that can be deleted, each with the reason.

        Args:
            used: Keys of all measured cells.
        """
        used_files = [stored.file for stored in self._find_all(used) if stored]
        for stored in self.stored:
            best = self._best_match(stored.key)
            if best is not None and best.file != stored.file:
                yield stored, f"{best.file} replaces it"
            elif stored.moved and stored.file not in used_files:
                yield stored, f"{stored.key.case_file} is gone"

    def _find_all(self, keys: Sequence[BaselineKey]) -> list[StoredBaseline | None]:
        """Return the file of each key; a moved one only if no other key could claim it."""
        matches = {key: self._best_match(key) for key in keys}
        claims = Counter(_without_folder(key) for key in keys if matches[key] is None)
        return [
            matches[key] or (self._find_moved(key) if claims[_without_folder(key)] == 1 else None)
            for key in keys
        ]

    def _find_moved(self, key: BaselineKey) -> StoredBaseline | None:
        """Return the file whose case file has moved to that of the key; None if several may."""
        moved = [
            stored
            for stored in self.stored
            if stored.moved and _without_folder(stored.key) == _without_folder(key)
        ]
        if len({stored.key.case_file for stored in moved}) != 1:
            return None
        return self._best_match(moved[0].key)

    def _best_match(self, key: BaselineKey) -> StoredBaseline | None:
        """Return the file of a key; of several, by same skill, newest date."""
        matches = [
            stored
            for stored in self.stored
            if (stored.key.case_file, stored.key.model) == (key.case_file, key.model)
        ]
        return max(
            matches,
            key=lambda stored: (
                stored.key.skill == key.skill,
                stored.baseline.date,
            ),
            default=None,
        )


def key_of(cell: TrialGroup) -> BaselineKey:
    """Return the key of a cell's baseline."""
    return BaselineKey(cell.case_file or cell.path, cell.skill, cell.model)


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
    files = [file for file in sorted(folder.rglob("*.json")) if file.name in names]
    return Baselines(tuple(_stored(folder, project, files)))


def _stored(folder: Path, project: Path | None, files: Iterable[Path]) -> Iterator[StoredBaseline]:
    for file in files:
        case_file = "/".join(map(unquote, file.parent.relative_to(folder).parts))
        # The folder of a case file may have the name of a baseline file.
        baseline = None if file.is_dir() else read_baseline(file, case_file)
        if baseline is not None:
            has_moved = (
                project is not None
                and not (project / baseline.case_file.partition("::")[0]).exists()
            )
            yield StoredBaseline(file=file, baseline=baseline, moved=has_moved)


def _part(name: str) -> str:
    """Return a path component escaped so that it cannot leave the folder; `unquote` reverts it."""
    return "%2E%2E" if name == ".." else name.replace("%", "%25")


def _name(model: str) -> str:
    quoted = quote(model, safe=" ")
    return f"%2E{quoted[1:]}.json" if quoted.startswith(".") else f"{quoted}.json"


def _without_folder(key: BaselineKey) -> tuple[str, str, str]:
    return posixpath.basename(key.case_file), key.skill, key.model
