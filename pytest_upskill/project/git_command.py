"""Run git in a folder."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_SECONDS = 60
_KEPT = ("HOME", "PATH", "XDG_CONFIG_HOME")


class GitError(Exception):
    """A git command that fails; the message says why and what to do."""


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
            # Do not run a program that the repository's settings name.
            ["git", "-c", "core.fsmonitor=false", *args],  # noqa: S607 - the git of the user
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
    return done
