"""Read skills and their cases from disk."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from pytest_upskill import CASE_FILE, LABELS_FILE
from pytest_upskill.checks.extensions import NO_EXTENSIONS, Extensions
from pytest_upskill.formats.discovery import CaseDiscovery, folder_of_cases
from pytest_upskill.formats.skill import Case, GateRule, Skill
from pytest_upskill.formats.skill_md.bundle import read_bundle
from pytest_upskill.formats.skill_md.files import leads_out, read_files
from pytest_upskill.formats.skill_md.frontmatter import SkillText, read_skill_text
from pytest_upskill.formats.skill_meta.reader import read_cases
from pytest_upskill.formats.source.problems import BadFile, Problem
from pytest_upskill.formats.source.text import read_text

if TYPE_CHECKING:
    from pytest_upskill.formats.evals.owner import Owner

MAX_CASES = 1000
"""Maximum number of cases in a file."""


class SkillError(Exception):
    """A skill that cannot be run; the message lists every problem of its files, one per line."""


class NoSkillError(SkillError):
    """A file whose cases do not belong to any skill."""


def load_skills(
    case_file: Path,
    *,
    shown: str | None = None,
    extensions: Extensions = NO_EXTENSIONS,
    discovery: CaseDiscovery | None = None,
) -> list[Skill]:
    """Read a case file and every ``SKILL.md`` that its cases belong to.

    Args:
        case_file: A ``skill_meta.json``, an ``evals.json`` or a similar file; or a ``SKILL.md``,
            to read the skill without cases.
        shown: The path to write in messages, such as relative to pytest's root; None for
            ``case_file``.
        extensions: What plugins add to the format.
        discovery: Where to search for skills. A link that leads out of its root, and out of a git
            repository around it, is an error. None to limit the search by git only.

    Returns:
        One skill with all cases, or several skills with their own cases each.

    Raises:
        NoSkillError: No skill is found for any of the cases.
        SkillError: A file has problems; the message lists all of them.
    """
    discovery = discovery or CaseDiscovery()
    return _Loader(case_file, PurePath(shown or case_file), extensions, discovery).skills()


class _Loader:
    """Reader of one case file, which collects its problems and those of its skills."""

    def __init__(
        self, case_file: Path, shown: PurePath, extensions: Extensions, discovery: CaseDiscovery
    ) -> None:
        self._case_file = case_file
        self._path = case_file.absolute()
        self._shown = shown
        self._extensions = extensions
        self._discovery = discovery
        self._folder = discovery.owning_skill(self._path)
        self._labelled = (self._path.parent / LABELS_FILE).is_file()
        self._texts: dict[Path, SkillText] = {}
        self._gate = GateRule()
        self._warnings: Sequence[Problem] = ()
        """Warnings about the cases."""
        self._problems: list[str] = []

    def skills(self) -> list[Skill]:
        """Read everything; raise SkillError if there is any problem."""
        groups: dict[Path, list[Case]] = {}
        if self._folder is not None:
            self._text_of(self._folder)
            groups[self._folder] = []
        cases: Sequence[tuple[Path, Case]] = ()
        with self._collect_problems(str(self._shown)):
            cases = self._cases()
        with self._collect_problems(str(self._shown.parent / LABELS_FILE)):
            cases = self._without_excluded(cases)
        if self._problems:
            raise SkillError("\n".join(self._problems))
        if cases:
            groups = {folder: [] for folder, _ in cases}
        for folder, case in cases:
            groups[folder].append(case)
        return [self._skill(folder, groups) for folder in groups]

    def _skill(self, folder: Path, groups: Mapping[Path, Sequence[Case]]) -> Skill:
        text = self._texts[folder]
        bundle = read_bundle(folder, text)
        warnings = [
            each.at(self._display_name(folder)) for each in (*text.warnings, *bundle.warnings)
        ]
        # The first skill of a file carries the warnings about its cases, so that each appears once.
        if folder == next(iter(groups)):
            warnings += [each.at(str(self._shown)) for each in self._warnings]
        return Skill(
            name=text.name,
            description=text.description,
            hidden=text.hidden,
            text=bundle.text,
            folder=folder,
            case_file=self._case_file,
            shares_file=list(groups) != [self._folder],
            cases=tuple(groups[folder]),
            labelled=self._labelled,
            gate=self._gate,
            warnings=tuple(warnings),
        )

    def _cases(self) -> Sequence[tuple[Path, Case]]:
        """Return the cases, each with the folder of the skill that it belongs to."""
        if self._path.name == "SKILL.md":
            return ()
        text = self._read(self._path)
        cases = self._own_cases(text) if self._path.name == CASE_FILE else self._evals_cases(text)
        if len(cases) > MAX_CASES:
            what = f"has {len(cases):,} cases; a file may have {MAX_CASES:,}: split it"
            raise BadFile([Problem(what=what)])
        return cases

    def _own_cases(self, text: str) -> Sequence[tuple[Path, Case]]:
        """Read the cases of a ``skill_meta.json``, which is in the folder of its skill."""
        folder = self._path.parent
        cases, self._gate = read_cases(
            text,
            folder=folder,
            names=(self._text_of(folder).name, folder.name),
            extensions=self._extensions,
        )
        return [(folder, case) for case in cases]

    def _evals_cases(self, text: str) -> Sequence[tuple[Path, Case]]:
        """Read the cases of an evals file, which may name their skills."""
        # Imported late: most skills have no such file.
        from pytest_upskill.formats.evals.reader import SUFFIXES, read_evals
        from pytest_upskill.formats.trigger_statements import with_trigger

        if self._path.suffix not in SUFFIXES:
            raise BadFile([Problem(what=f"cases are read from {', '.join(sorted(SUFFIXES))} only")])
        owner = None if self._folder is None else self._owner(self._folder)
        evals = read_evals(text, suffix=self._path.suffix, owner=owner, find=self._find)
        if not evals.owners and self._folder is None:
            reason = evals.cases[0].skip if evals.cases else "it contains no cases"
            reason = reason or "they name no skill: add 'skill'"
            raise NoSkillError(f"{self._shown}: none of its cases can run: {reason}")
        self._warnings = evals.warnings
        return [
            (owner.folder, with_trigger(case, owner.names))
            for owner, case in zip(evals.owners, evals.cases, strict=True)
        ]

    def _without_excluded(self, cases: Sequence[tuple[Path, Case]]) -> Sequence[tuple[Path, Case]]:
        """Return the cases without the statements that a labels file excludes."""
        if not cases or not self._labelled:
            return cases
        # Imported late: most case files have no labels.
        from pytest_upskill.formats.judge_labels import without_excluded

        kept = without_excluded([case for _, case in cases], self._path)
        return [(folder, case) for (folder, _), case in zip(cases, kept, strict=True)]

    def _find(self, name: str) -> Owner | None:
        folder = self._discovery.find_skill(name, self._path)
        return None if folder is None else self._owner(folder)

    def _owner(self, folder: Path) -> Owner:
        from pytest_upskill.formats.evals.owner import Owner

        read = partial(
            read_files,
            folder,
            beside=self._path.parent,
            of_cases=folder_of_cases(self._path, folder),
        )
        names = {self._text_of(folder).name, folder.name}
        return Owner(folder=folder, names=names, read_files=read)

    def _text_of(self, folder: Path) -> SkillText:
        """Read the ``SKILL.md`` of a folder once, and collect its problems."""
        if folder not in self._texts:
            self._texts[folder] = SkillText(name=folder.name, text="", body_at=0, warnings=())
            file = folder / "SKILL.md"
            if file.exists():
                with self._collect_problems(self._display_name(folder)):
                    self._texts[folder] = read_skill_text(self._read(file), folder=folder.name)
            else:
                what = f"no SKILL.md beside {self._path.name} (a skill is a folder with a SKILL.md)"
                self._problems.append(f"{self._shown.parent}: {what}")
        return self._texts[folder]

    def _read(self, path: Path) -> str:
        if target := leads_out(path, self._discovery.root):
            what = (
                f"this link leads outside the project, to {target}: copy the folder, or pass "
                f"it as an argument"
            )
            raise BadFile([Problem(what=what)])
        return read_text(path)

    def _display_name(self, folder: Path) -> str:
        to_skill = os.path.relpath(folder / "SKILL.md", self._path.parent)
        return os.path.normpath(self._shown.parent / to_skill)

    @contextmanager
    def _collect_problems(self, path: str) -> Iterator[None]:
        """Collect the problems of a bad file instead of raising."""
        try:
            yield
        except BadFile as error:
            self._problems += [problem.at(path) for problem in error.problems]
