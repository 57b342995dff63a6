"""``--upskill-lint``: one item for each case file, red with all that is wrong with it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.compile import Compilers
from pytest_upskill.extending import extensions_of, languages_of
from pytest_upskill.formats.bundle import deeper_references
from pytest_upskill.formats.load import SkillError, load_skill, skill_folder
from pytest_upskill.formats.skill_md import read_skill_text
from pytest_upskill.items import shown
from pytest_upskill.lint import findings


class LintFailed(Exception):  # noqa: N818  a verdict about a file, not an error of the code
    """There is something to mend; the message is every finding, one a line."""


class LintFile(pytest.File):
    """A case file that is looked at, and not run."""

    def collect(self) -> Iterator[LintItem]:
        """Make its one item."""
        yield LintItem.from_parent(self, name="lint")


class LintItem(pytest.Item):
    """A look at one case file and the ``SKILL.md`` that it is for."""

    def runtest(self) -> None:
        """Fail with all findings."""
        path = shown(self.path, self.config)
        compilers = Compilers(languages=languages_of(self.config))
        try:
            skill = load_skill(
                self.path, shown=path, extensions=extensions_of(self.ihook, compilers)
            )
        except SkillError as error:
            raise LintFailed(str(error)) from None
        lines = [
            *skill.warnings,
            *self._deeper_references(),
            *(f"{path}:{each.line}: {each.what}" for each in findings(skill)),
        ]
        if lines:
            raise LintFailed("\n".join(lines))

    def _deeper_references(self) -> Iterator[str]:
        folder = skill_folder(self.path)
        text = (folder / "SKILL.md").read_text("utf-8-sig")
        for name, problem in deeper_references(folder, read_skill_text(text, folder=folder.name)):
            yield problem.at(shown(folder / name, self.config))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Print the findings alone."""
        if isinstance(excinfo.value, LintFailed):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        """Name the file; its findings have their own lines."""
        return Path(self.path), None, f"lint {shown(self.path, self.config)}"
