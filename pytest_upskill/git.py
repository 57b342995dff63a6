"""What git knows of a skill's folder. Nothing is checked out, and nothing is written."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from pathlib import Path

_SECONDS = 60
_MAX_BYTES = 1 << 20
_PLACES = ("toplevel", "prefix")
_KEPT = ("HOME", "PATH", "XDG_CONFIG_HOME")


class GitError(Exception):
    """Git cannot tell; the message says why and what to do."""


def merge_base(folder: Path, ref: str) -> str:
    """Find the commit where the branch that is checked out left ``ref``.

    Args:
        folder: Anywhere in the repository's work tree; of a submodule, in that of its own.
        ref: A branch, tag or commit.

    Raises:
        GitError: There is no git, no repository, no such ref, or no common commit.
    """
    commit = _git(folder, "rev-parse", "--verify", "--end-of-options", f"{ref}^{{commit}}")
    if commit is None:
        if _git(folder, "rev-parse", "--git-dir") is None:
            raise GitError(f"{folder} is not in a git repository: git init, or run in a clone")
        remote, slash, branch = ref.partition("/")
        fetch = f"git fetch {remote} {branch}" if slash else "git fetch"
        raise GitError(f"no commit is called {ref!r} in {folder}: {fetch}, or write another ref")
    base = _git(folder, "merge-base", commit.decode().strip(), "HEAD")
    if base is None:
        if _git(folder, "rev-parse", "--is-shallow-repository") == b"true\n":
            raise GitError(
                f"this shallow clone does not reach back to where the branch left {ref!r}: "
                "git fetch --unshallow (actions/checkout: fetch-depth: 0)"
            )
        raise GitError(f"{ref!r} and HEAD have no commit in common: write another ref")
    return base.decode().strip()


def extract(commit: str, folder: Path, into: Path) -> bool:
    """Write a skill's folder as it was at ``commit``, found by its ``SKILL.md`` if it was moved.

    Args:
        commit: As ``merge_base`` gives it.
        folder: The skill's folder as it is.
        into: An empty folder.

    Returns:
        Whether it was there.

    Raises:
        GitError: It cannot be read.
    """
    top, prefix = (_must(folder, "rev-parse", f"--show-{what}").decode() for what in _PLACES)
    path = prefix.removesuffix("\n")
    if _git(folder, "cat-file", "-e", f"{commit}:{path}SKILL.md") is None:
        renamed = _old_name(commit, Path(top.removesuffix("\n")), f"{path}SKILL.md")
        if renamed is None:
            return False
        path = renamed.removesuffix("SKILL.md")
    archive = _must(Path(top.removesuffix("\n")), "archive", "--format=tar", f"{commit}:{path}")
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(into, filter=_text_only)  # noqa: S202 - the filter keeps it inside
    return True


def is_changed(commit: str, folder: Path) -> bool:
    """Tell whether anything in ``folder`` is not as it was at ``commit``.

    Committed, staged, unstaged and untracked changes count, ignored files do not.
    """
    if _git(folder, "diff", "--quiet", commit, "--", ".") is None:
        return True
    return bool(_must(folder, "ls-files", "--others", "--exclude-standard", "--", "."))


def _old_name(commit: str, top: Path, name: str) -> str | None:
    """Find what a file was called at ``commit``; both names are from the top of the repository."""
    renames = _must(top, "diff", "-M", "--diff-filter=R", "--name-status", "-z", commit)
    # A score, the old name, the new one.
    fields = iter(renames.decode("utf-8", "surrogateescape").split("\0"))
    found = {new: old for _, old, new in zip(fields, fields, fields, strict=False)}
    return found.get(name)


def _text_only(member: tarfile.TarInfo, into: str) -> tarfile.TarInfo | None:
    """Leave out what cannot be text for a model, and whatever leads elsewhere."""
    small = member.isdir() or (member.isfile() and member.size <= _MAX_BYTES)
    return tarfile.data_filter(member, into) if small else None


def _must(folder: Path, *args: str) -> bytes:
    """Run git where a no has no other cause than trouble."""
    done = _run(folder, *args)
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().partition("\n")[0]
        raise GitError(f"git {' '.join(args)} fails in {folder}: {said}")
    return done.stdout


def _git(folder: Path, *args: str) -> bytes | None:
    """Return what git writes, None where it says no."""
    done = _run(folder, *args)
    return None if done.returncode else done.stdout


def _run(folder: Path, *args: str) -> subprocess.CompletedProcess[bytes]:
    """Run git in a folder.

    Raises:
        GitError: It cannot be run.
    """
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    try:
        done = subprocess.run(  # noqa: S603 - the arguments are ours, and a ref is no option
            # No program of the repository's choice.
            ["git", "-c", "core.fsmonitor=false", *args],  # noqa: S607 - the git of the user
            cwd=folder,
            env={
                **environment,
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
    return done
