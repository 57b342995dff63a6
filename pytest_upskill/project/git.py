"""The git history of a project, read without changing the repository or the work tree."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pytest_upskill import STATE

_SECONDS = 60
_SAFE = ("-c", "core.fsmonitor=false", "-c", "safe.bareRepository=explicit")
"""Run no program that settings name, and take no committed folder for a bare repository."""
_KEPT = ("HOME", "PATH", "XDG_CONFIG_HOME")
_NOT_OURS = f":(exclude,glob,top)**/{STATE}/**"
"""Pathspec without recordings, baselines and history, which runs themselves write."""


class GitError(Exception):
    """A git command that fails; the message says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """The state of a git work tree."""

    commit: str
    """Full hash of HEAD."""
    branch: str
    """Name of the branch; "" if HEAD is detached."""
    dirty: bool
    """Whether tracked files differ from the commit, or a skill's folder has untracked ones."""
    subject: str = ""
    """The first line of the commit's message."""


def revision(project: Path, folders: Iterable[Path]) -> Revision | None:
    """Return the state of a project's work tree; None without git, a repository or a commit.

    Args:
        project: A folder in the repository.
        folders: Folders in which untracked files count as changes.
    """
    try:
        commit = _line(project, "rev-parse", "--verify", "HEAD")
        if commit is None:
            return None
        branch = _line(project, "symbolic-ref", "--short", "--quiet", "HEAD")
        return Revision(
            commit=commit,
            branch=branch or "",
            dirty=_has_changes(project, folders),
            subject=_line(project, "log", "-1", "--format=%s") or "",
        )
    except GitError:
        return None


def starting_commit(folder: Path, ref: str, project: Path) -> str:
    """Return the commit from which the current branch started: the merge base of a ref and HEAD.

    Args:
        folder: Any folder in a work tree.
        ref: A branch, tag or commit.
        project: A folder in the project's repository.

    Raises:
        GitError: There is no git, no repository, no such ref, or no common commit, or the folder is
            in a submodule of the project.
    """
    if git_output(folder, "rev-parse", "--show-superproject-working-tree"):
        top = Path(line_of(folder, "rev-parse", "--show-toplevel"))
        if not project.resolve().is_relative_to(top):
            raise GitError(
                f"{top} is a submodule, which {ref!r} does not belong to: run pytest in it, or "
                "compare with a baseline"
            )
    return merge_base(folder, ref)


def merge_base(folder: Path, ref: str) -> str:
    """Return the merge base of ``ref`` and HEAD.

    Args:
        folder: Any folder in the repository's work tree.
        ref: A branch, tag or commit.

    Raises:
        GitError: There is no git, no repository, no such ref, or no common commit.
    """
    commit = git_output(folder, "rev-parse", "--verify", "--end-of-options", f"{ref}^{{commit}}")
    if commit is None:
        if git_output(folder, "rev-parse", "--git-dir") is None:
            raise GitError(f"{folder} is not in a git repository: git init, or run in a clone")
        raise GitError(
            f"no commit is called {ref!r} in {folder}: {_fetch(folder, ref)}, or write another ref"
        )
    base = git_output(folder, "merge-base", commit.decode().strip(), "HEAD")
    if base is None:
        if _is_shallow(folder):
            raise GitError(
                f"this shallow clone does not reach back to where the branch left {ref!r}: "
                "git fetch --unshallow (actions/checkout: fetch-depth: 0)"
            )
        raise GitError(f"{ref!r} and HEAD have no commit in common: write another ref")
    return base.decode().strip()


def extract(commit: str, folder: Path, into: Path) -> bool:
    """Write the content of a skill's folder at a commit, even if the folder was moved since.

    Args:
        commit: A commit from ``starting_commit``.
        folder: The skill's current folder.
        into: An empty folder, to which the files are written.

    Returns:
        Whether the skill existed at the commit.

    Raises:
        GitError: A git command fails.
    """
    top = Path(line_of(folder, "rev-parse", "--show-toplevel"))
    path = line_of(folder, "rev-parse", "--show-prefix")
    if not _has_skill(top, commit, path):
        renamed = _old_prefix(commit, top, path)
        if renamed is None:
            return False
        path = renamed
    _check_out(top, f"{commit}:{path}", into)
    return True


def deleted_skills(commit: str, folder: Path) -> list[str]:
    """Return the folders, relative to the repository, whose ``SKILL.md`` was deleted since.

    Raises:
        GitError: A git command fails.
    """
    arguments = ("diff", "--name-only", "--no-renames", "--diff-filter=D", "-z", commit)
    names = output_of(folder, *arguments, "--", ":(top,glob)**/SKILL.md")
    files = names.decode("utf-8", "surrogateescape").split("\0")
    return sorted(file.rpartition("/")[0] or "." for file in files if file)


def skills_deleted(ref: str, project: Path) -> list[Path]:
    """Return the folders of a project whose ``SKILL.md`` was deleted since a ref, and not renamed.

    Raises:
        GitError: A git command fails.
    """
    commit = merge_base(project, ref)
    folders = deleted_skills(commit, project)
    if not folders:
        return []
    top = Path(line_of(project, "rev-parse", "--show-toplevel"))
    renamed = set(_renames(commit, top).values())
    skills = {top / folder: Path(folder, "SKILL.md").as_posix() for folder in folders}
    return [folder for folder, file in skills.items() if file not in renamed]


def has_remote(folder: Path) -> bool:
    """Return whether the repository of a folder has a remote."""
    return bool(git_output(folder, "remote"))


def is_changed(commit: str, folder: Path) -> bool:
    """Return whether a folder differs from a commit.

    Committed, staged, unstaged and untracked changes count; ignored files do not.

    Raises:
        GitError: A git command fails.
    """
    if git_output(folder, "diff", "--quiet", commit, "--", ".") is None:
        return True
    return bool(output_of(folder, "ls-files", "--others", "--exclude-standard", "--", "."))


def is_dirty(path: Path) -> bool:
    """Return whether a file, or a file in a folder, differs from the last commit or is untracked.

    Ignored files do not count, and nothing does outside a repository or without git.

    Raises:
        GitError: Git refuses to read the repository, or takes too long.
    """
    if shutil.which("git") is None:
        return False
    folder, name = (path, ".") if path.is_dir() else (path.parent, path.name)
    return bool(git_output(folder, "status", "--porcelain", "--", name))


def line_of(folder: Path, *args: str) -> str:
    """Return the one-line output of a git command; names in it may not be UTF-8."""
    return output_of(folder, *args).decode("utf-8", "surrogateescape").removesuffix("\n")


def output_of(folder: Path, *args: str, **variables: str) -> bytes:
    """Return the output of a git command; raise GitError if it fails."""
    done = run_git(folder, *args, **variables)
    if done.returncode:
        message = done.stderr.decode("utf-8", "replace").strip().partition("\n")[0]
        raise GitError(f"git {' '.join(args)} fails in {folder}: {message}")
    return done.stdout


def git_output(folder: Path, *args: str) -> bytes | None:
    """Return the output of a git command, None if it fails."""
    done = run_git(folder, *args)
    return None if done.returncode else done.stdout


def run_git(folder: Path, *args: str, **variables: str) -> subprocess.CompletedProcess[bytes]:
    """Run git in a folder, with additional environment variables.

    Raises:
        GitError: Git cannot be run.
    """
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    try:
        done = subprocess.run(  # noqa: S603 - the arguments are ours, and a ref is no option
            ["git", *_SAFE, *args],  # noqa: S607 - the git of the user
            cwd=folder,
            env={
                **environment,
                **variables,
                "LC_ALL": "C",
                "GIT_OPTIONAL_LOCKS": "0",
                "GIT_TERMINAL_PROMPT": "0",
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        raise GitError("git is not installed: install it, or compare with a baseline") from None
    except subprocess.TimeoutExpired:
        raise GitError(f"git {args[0]} took over {_SECONDS} s in {folder}") from None
    if b"dubious ownership" in done.stderr:
        raise GitError(f"git does not trust {folder}: git config --global --add safe.directory ...")
    if b"safe.bareRepository" in done.stderr:
        raise GitError(f"{folder} is a bare git repository inside of another: remove its HEAD file")
    return done


def _has_changes(project: Path, folders: Iterable[Path]) -> bool:
    status = ("status", "--porcelain", "--untracked-files=no", "--", ":/", _NOT_OURS)
    if git_output(project, *status):
        return True
    inside = sorted({str(folder) for folder in folders if folder.is_dir()})
    if not inside:
        return False
    return bool(git_output(project, "status", "--porcelain", "--", *inside, _NOT_OURS))


def _line(folder: Path, *args: str) -> str | None:
    found = git_output(folder, *args)
    return None if found is None else found.decode("utf-8", "replace").strip()


def _is_shallow(folder: Path) -> bool:
    return git_output(folder, "rev-parse", "--is-shallow-repository") == b"true\n"


def _fetch(folder: Path, ref: str) -> str:
    """Return the command that gets a missing ref; a shallow clone also lacks other branches."""
    command = "git fetch --unshallow" if _is_shallow(folder) else "git fetch"
    remote, slash, branch = ref.partition("/")
    return f"{command} {remote} {branch}:refs/remotes/{ref}" if slash else command


def _has_skill(top: Path, commit: str, prefix: str) -> bool:
    return git_output(top, "cat-file", "-e", f"{commit}:{prefix}SKILL.md") is not None


def _old_prefix(commit: str, top: Path, prefix: str) -> str | None:
    """Return the path of a skill's folder at a commit, as git finds one of its files; else None."""
    renames = _renames(commit, top)
    for new in sorted(renames, key=lambda name: (name != f"{prefix}SKILL.md", name)):
        old, inside = renames[new], new.removeprefix(prefix)
        place = old.removesuffix(inside)
        is_moved = new.startswith(prefix) and f"/{old}".endswith(f"/{inside}")
        if is_moved and _has_skill(top, commit, place) and not (top / place / "SKILL.md").exists():
            return place
    return None


def _renames(commit: str, top: Path) -> dict[str, str]:
    """Return the old names of files by their new names, relative to the repository."""
    args = ("diff", "-M", "--diff-filter=R", "--name-status", "-z", commit)
    # A score, the old name, the new one.
    fields = iter(output_of(top, *args).decode("utf-8", "surrogateescape").split("\0"))
    return {new: old for _, old, new in zip(fields, fields, fields, strict=False)}


def _check_out(top: Path, tree: str, into: Path) -> None:
    """Write a tree to a folder, with the links that stay inside, through an index of its own.

    Unlike ``git archive`` it writes files that .gitattributes keeps out of archives too.
    """
    with tempfile.TemporaryDirectory(prefix="pytest-upskill-") as temporary:
        index = str(Path(temporary, "index"))
        for args in (("read-tree", tree), ("checkout-index", "--all", f"--prefix={into}/")):
            output_of(top, *args, GIT_INDEX_FILE=index)
    inside = into.resolve()
    for path in into.rglob("*"):
        # One that exists is no loop, which could not be resolved.
        if path.is_symlink() and not (path.exists() and path.resolve().is_relative_to(inside)):
            path.unlink()
