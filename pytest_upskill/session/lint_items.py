"""``--upskill-lint``: an item for each case file, which fails with all findings about it."""

import os
from collections.abc import Iterator

import pytest

from pytest_upskill import CASE_FILE
from pytest_upskill.cases.catalogue import as_listed
from pytest_upskill.cases.lint import description_findings, findings
from pytest_upskill.cases.load import SkillError, load_skills
from pytest_upskill.cases.skill import Skill
from pytest_upskill.project.messages import safe_line
from pytest_upskill.session.case_files import catalogue_file, catalogues_of, discovery_of, shown
from pytest_upskill.session.items import ItemFailed, ItemOutsidePackages
from pytest_upskill.session.messages import GROUPED_WARNINGS
from pytest_upskill.session.resources import extensions_of, languages_of
from pytest_upskill.session.untrusted_files import HooksOfParent

_FIRST = pytest.StashKey[dict[str, str]]()
"""The item that reports a finding first, by the finding."""


class LintItem(ItemOutsidePackages):
    """The lint check of one case file and its skills."""

    def runtest(self) -> None:
        """Fail with all findings.

        Raises:
            ItemFailed: There are findings, or the file cannot be read.
        """
        path = shown(self.path, self.config)
        extensions = extensions_of(self.ihook, languages_of(self.config))
        discovery = discovery_of(self.config)
        try:
            skills = load_skills(self.path, shown=path, extensions=extensions, discovery=discovery)
        except SkillError as error:
            raise ItemFailed(str(error)) from None
        grouped = self.config.stash[GROUPED_WARNINGS]
        lines: list[str] = []
        for skill in skills:
            if skill.broken:
                lines += skill.broken.splitlines()
                continue
            if self.path.name == "SKILL.md":
                grouped.note(f"{path}:1", f"no cases: write them into {CASE_FILE} beside it")
            for case in skill.cases:
                if case.skip:  # this may be intended
                    grouped.note(f"{path}:{case.place}", case.skip, case=case.id)
            found = findings(skill)
            for each in found:
                if each.is_hint:
                    grouped.note(f"{path}:{each.line}:{each.column}", each.what, case=each.where)
            lines += [
                *grouped.note_lines(skill.hints),
                *skill.warnings,
                *self._catalogue_findings(skill),
                *(each.at(path) for each in found if not each.is_hint),
            ]
        # A skill has one SKILL.md for all of its case files.
        first = self.config.stash.setdefault(_FIRST, {})
        if own := [line for line in lines if first.setdefault(line, self.nodeid) == self.nodeid]:
            raise ItemFailed("\n".join(own))

    def _catalogue_findings(self, skill: Skill) -> Iterator[str]:
        """Warn of a description that agents may not see or choose; yield what decides choices."""
        catalogues = catalogues_of(self.config)
        place = f"{shown(skill.folder / 'SKILL.md', self.config)}:1"
        path = shown(self.path, self.config)
        catalogue = catalogues.of(skill)
        for case in skill.cases:
            if unlisted := catalogue.why_unlisted(case):
                yield safe_line(f"{path}:{case.place}: {case.id}: {unlisted}")
        if skill.hidden:
            return
        grouped = self.config.stash[GROUPED_WARNINGS]
        listed, committed = as_listed(skill), catalogues.committed
        for what in description_findings(listed, catalogue):
            grouped.note(place, what)
        if ambiguous := catalogues.why_ambiguous(skill):
            line = f"{place}: name: {ambiguous}"
            # Without cases, no trigger trial has to choose between the two.
            yield from [line] if skill.cases else grouped.note_lines([line])
        if committed and listed not in committed.skills:
            yield (
                f"{place}: {shown(catalogue_file(self.config), self.config)} lists this skill "
                "with another description or not at all: write it again with "
                "--upskill-catalogue-update"
            )

    def reportinfo(self) -> tuple[os.PathLike[str], int, str]:
        """Return the file and a title; each finding has its own line number."""
        return self.path, 0, f"lint {shown(self.path, self.config)}"


class LintFile(HooksOfParent, pytest.File):
    """A case file, or a ``SKILL.md`` without one, that is linted and not run."""

    def collect(self) -> Iterator[LintItem]:
        """Make the only item."""
        yield LintItem.from_parent(self, name="lint")
