"""Python files of skills, their evals and workspaces, which may be a stranger's: none is imported.

pytest would import test modules and ``conftest.py`` of every folder that it visits, and so run a
stranger's code outside the sandbox. With models, only a file that is named is collected there.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path

import pytest
from pluggy import HookRelay

from pytest_upskill import CASE_FILES, CASE_SUFFIXES
from pytest_upskill.project.messages import listed, safe_line
from pytest_upskill.session.case_files import arguments_of, discovery_of, shown

NOT_COLLECTED = pytest.StashKey[list[str]]()
"""Names of the files that pytest would have imported."""


class HooksOfParent:
    """A node with the hooks of its parent.

    Those of its own folder are those of the ``conftest.py`` that pytest has loaded for it, which
    are none for a folder of strangers.
    """

    parent: pytest.Collector | None

    @property
    def ihook(self) -> HookRelay:
        """Return the hooks that apply to the node."""
        assert self.parent is not None
        return self.parent.ihook


class StrangersFolder(HooksOfParent, pytest.File):
    """The folder of a skill or of evals, and every folder below it.

    It is no `pytest.Directory`, whose ``conftest.py`` and ``__init__.py`` pytest would import.
    """

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        """Collect as pytest does, without Python files that are not named."""
        for path in sorted(self.path.iterdir()):
            is_folder, is_named = path.is_dir(), self.session.isinitpath(path)
            if path.suffix == ".py" and not is_folder and not is_named:
                self._note(path)
                continue
            is_above = is_folder and self.session.isinitpath(path, with_parents=True)
            if not (is_named or is_above) and self.ihook.pytest_ignore_collect(
                collection_path=path, config=self.config
            ):
                continue
            if is_folder:
                if collector := self.ihook.pytest_collect_directory(path=path, parent=self):
                    yield collector
            elif path.is_file():
                yield from self.ihook.pytest_collect_file(file_path=path, parent=self)

    def _note(self, path: Path) -> None:
        """Remember a file that pytest would have imported for the arguments."""
        if not self.config.pluginmanager.has_plugin("python"):
            return
        patterns = ("conftest.py", *self.config.getini("python_files"))
        if any(map(path.is_relative_to, arguments_of(self.config))) and any(
            fnmatch(path.name, pattern) for pattern in patterns
        ):
            self.config.stash.setdefault(NOT_COLLECTED, []).append(shown(path, self.config))


def is_of_strangers(folder: Path, parent: pytest.Collector) -> bool:
    """Return whether the Python files of a folder are not collected."""
    root = parent.config.rootpath
    if isinstance(parent, StrangersFolder):
        return True
    with suppress(OSError):  # gone, or not readable, which pytest reports when it collects it
        if (is_named := _is_named_as(folder, root)) or folder == root:
            return is_named
        discovery = discovery_of(parent.config)
        files = (file for file in folder.iterdir() if file.suffix in CASE_SUFFIXES)
        return any(map(discovery.is_case_file, files))
    return False


def line_about(names: Sequence[str]) -> str:
    """Return a line about the files that were not collected."""
    return safe_line(
        f"tests of skills, evals and workspaces are not run, as they may be a stranger's: "
        f"{listed(names, 3)}; name a file to run it"
    )


def initial_arguments(arguments: Iterable[str], start: Path, root: Path) -> list[str]:
    """Return arguments for which pytest loads, before it collects, no ``conftest.py`` of strangers.

    pytest loads that of each argument, of its folders ``test*`` and of all folders above.

    Args:
        arguments: The arguments of pytest.
        start: The folder in which it was started.
        root: Its rootdir.
    """
    loaded: list[str] = []
    for argument in arguments:
        path = start / argument.partition("::")[0]
        if path.suffix == ".py":
            loaded.append(argument)
            continue
        folder = path if path.is_dir() else path.parent
        own = next(each for each in (folder, *folder.parents) if not _is_below(each, root))
        below = own.glob("test*") if own == path else ()
        for each in (own, *(sub for sub in below if sub.is_dir() and not _is_named_as(sub, root))):
            files = (above / "conftest.py" for above in (each, *each.parents))
            loaded += [str(file) for file in files if file.is_file()][:1]
    # Without any, pytest would take the folder in which it was started.
    return loaded or [os.devnull]


def _is_below(folder: Path, root: Path) -> bool:
    """Return whether a folder, or one between it and the rootdir, is one of strangers."""
    above = (each for each in (folder, *folder.parents) if each.is_relative_to(root))
    return _is_named_as(folder, root) or any(_is_named_as(each, root) for each in above)


def _is_named_as(folder: Path, root: Path) -> bool:
    """Return whether a folder, or a file in it, has a name of skills and evals.

    The rootdir is the user's own, whatever it is called, unless it is a skill.
    """
    names = {*os.listdir(folder)} if folder.is_dir() else set()  # noqa: PTH208  names
    if "SKILL.md" in names or folder == root:
        return "SKILL.md" in names
    return folder.name in {"eval", "evals", "evaluations"} or not CASE_FILES.isdisjoint(names)
