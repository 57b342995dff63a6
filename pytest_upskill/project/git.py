"""The git history of a project, read without changing the repository or the work tree."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pytest_upskill import STATE

_SECONDS = 60
_SAFE = ("-c", "core.fsmonitor=false", "-c", "safe.bareRepository=explicit")
"""Run no program that settings name, and take no committed folder for a bare repository."""
_USUAL = ("-c", "diff.relative=false", "-c", "status.showUntrackedFiles=normal")
"""Answer as without the user's settings."""
_KEPT = ("HOME", "PATH", "XDG_CONFIG_HOME")
_NOT_OURS = f":(exclude,glob,top)**/{STATE}/**"
"""Pathspec without recordings, baselines and history, which runs themselves write."""


class GitError(Exception):
    """A git command that fails; the message says why and what to do."""


class SubmoduleError(GitError):
    """Files are in a submodule, so the repository does not have them as they were."""


class NoGitError(GitError):
    """There is no git, no repository or no commit, and so nothing that could have changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """The state of a git work tree."""

    commit: str
    """Full hash of HEAD."""
    branch: str
    """Name of the branch; "" if HEAD is detached."""
    dirty: bool
    """Whether tracked files differ from the commit, or a skill's folder has untracked ones."""


def revision(project: Path, folders: Iterable[Path], *written: Path) -> Revision | None:
    """Return the state of a project's work tree; None without git, a repository or a commit.

    Args:
        project: A folder in the repository.
        folders: Folders in which untracked files count as changes.
        written: What runs themselves write, besides our own folder: not a change.
    """
    try:
        commit = git_output(project, "rev-parse", "--verify", "--quiet", "HEAD")
        if commit is None:
            return None
        branch = (git_output(project, "symbolic-ref", "--short", "--quiet", "HEAD") or "").strip()
        dirty = _has_changes(project, folders, written)
        return Revision(commit=commit.strip(), branch=branch, dirty=dirty)
    except GitError:
        return None


def merge_base(folder: Path, ref: str, project: Path | None = None) -> str:
    """Return the commit from which the current branch started: the merge base of a ref and HEAD.

    Args:
        folder: Any folder in a work tree.
        ref: A branch, tag or commit.
        project: A folder in the project's repository, which then has to be that of the folder.

    Raises:
        GitError: There is no git, no repository, no such ref, or no common commit, or the folder is
            in a submodule of the project.
    """
    if project and git_output(folder, "rev-parse", "--show-superproject-working-tree"):
        top = top_of(folder)
        if not project.resolve().is_relative_to(top):
            raise GitError(
                f"{top} is a submodule, which {ref!r} does not belong to: run pytest in it, or "
                "compare with a baseline"
            )
    commit = git_output(folder, "rev-parse", "--verify", "--end-of-options", f"{ref}^{{commit}}")
    if commit is None:
        if git_output(folder, "rev-parse", "--git-dir") is None:
            raise NoGitError(f"{folder} is not in a git repository: git init, or run in a clone")
        if git_output(folder, "rev-parse", "--verify", "HEAD") is None:
            raise NoGitError(f"{folder} has no commit yet: git commit the skills, then run again")
        cure = f"{_fetch(folder, ref)}, or write another ref"
        raise GitError(f"no commit is called {ref!r} in {folder}: {cure}")
    base = git_output(folder, "merge-base", commit.strip(), "HEAD")
    if base is None:
        if _is_shallow(folder):
            raise GitError(
                f"this shallow clone does not reach back to where the branch left {ref!r}: "
                "git fetch --unshallow (actions/checkout: fetch-depth: 0)"
            )
        raise GitError(f"{ref!r} and HEAD have no commit in common: write another ref")
    return base.strip()


def extract(commit: str, folder: Path, into: Path, *beside: Path) -> Path | None:
    """Write the files of a skill at a commit, each in its place, even if they were moved since.

    Args:
        commit: A commit from ``merge_base``.
        folder: The skill's current folder.
        into: An empty folder, which stands for the top of the repository.
        beside: Other paths to write, as they are now.

    Returns:
        The skill's folder in ``into``, None if the skill did not exist at the commit.

    Raises:
        SubmoduleError: Some of the files are in a submodule.
        GitError: A git command fails.
    """
    top = top_of(folder)
    check_out(commit, top, _pathspecs((folder, *beside), top), into)
    prefix = os.path.join(from_top(folder, top), "")  # noqa: PTH118  as git writes it
    if not ((into / prefix / "SKILL.md").exists() or _has_skill(top, commit, prefix)):
        place, moved = top / prefix, gone_skills(gone_files(commit, folder)).items()
        old = next((old for old, new in moved if new == place), None)
        if old is None:
            return None
        prefix = os.path.join(from_top(old, top), "")  # noqa: PTH118  as git writes it
        check_out(commit, top, [literal(prefix)], into)
    return into / prefix


def gone_files(commit: str, folder: Path) -> dict[Path, Path | None]:
    """Return where the files of a folder's repository are that left their places since.

    Returns:
        The new place, None if there is none, by the old one.

    Raises:
        GitError: A git command fails.
    """
    args = ("diff", "-M", "--diff-filter=DR", "--name-status", "-z", commit, "--", _NOT_OURS)
    top, fields = top_of(folder), iter(_text(folder, *args).split("\0"))
    gone: dict[Path, Path | None] = {}
    for status in filter(None, fields):  # a rename's has a score, and a new name follows
        old = top / next(fields)
        gone[old] = top / next(fields) if status.startswith("R") else None
    return gone


def changed_skills(commit: str, folder: Path) -> list[Path]:
    """Return the folders of a repository whose ``SKILL.md`` is new or changed since a commit.

    Raises:
        GitError: A git command fails.
    """
    args = ("diff", "--diff-filter=d", "--name-only", "-z", commit, "--", ":(top,glob)**/SKILL.md")
    top, names = top_of(folder), filter(None, _text(folder, *args).split("\0"))
    return [(top / name).parent for name in names]


def gone_skills(gone: Mapping[Path, Path | None]) -> dict[Path, Path | None]:
    """Return the old and new folders of the skills among files of ``gone_files``."""
    files = {old.parent: new for old, new in gone.items() if old.name == "SKILL.md"}
    return {old: new.parent if new else _home(old, gone) for old, new in files.items()}


def _home(skill: Path, gone: Mapping[Path, Path | None]) -> Path | None:
    """Return where a skill is whose rewritten ``SKILL.md`` git does not find, but another file."""
    for old, new in gone.items():
        if new is not None and skill in old.parents:
            inside = old.relative_to(skill)
            home = Path(*new.parts[: -len(inside.parts)])
            if home / inside == new and (home / "SKILL.md").exists():
                return home
    return None


def content_at(commit: str, file: Path) -> bytes | None:
    """Return what a file contained at a commit, None if there was no such file.

    Raises:
        GitError: Git cannot be run.
    """
    done = run_git(file.parent, "show", f"{commit}:./{file.name}")
    return None if done.returncode else done.stdout


def is_changed(commit: str, folder: Path, *beside: Path) -> bool:
    """Return whether a folder, or other paths that belong to it, differ from a commit.

    Committed, staged, unstaged and untracked changes count, also those of what links in it lead to;
    ignored files do not, but git knows nothing of a skill whose ``SKILL.md`` it ignores.

    Raises:
        GitError: A git command fails.
    """
    found = {link for place in (folder, *beside) for link in links(place)}
    paths = ["."]
    if others := {*beside, *found, *(Path(os.path.realpath(link)) for link in found)}:
        paths += _pathspecs(others, top_of(folder))
    # A setting may tell git to pass over submodules.
    if _text(folder, "diff", "--name-only", "--ignore-submodules=none", commit, "--", *paths):
        return True
    untracked = _text(folder, "ls-files", "--others", "--exclude-standard", "--", *paths)
    return bool(untracked or _text(folder, "ls-files", "--others", "--", "SKILL.md"))


def names_in(commit: str, folder: Path) -> tuple[set[str], set[str]]:
    """Return the names in a folder of what differs from a commit, and of the skills git knows.

    What counts as a difference is said in `is_changed`.

    Raises:
        GitError: A git command fails.
    """
    options = ("--relative", "--name-only", "-z", "--ignore-submodules=none")
    changed = _text(folder, "diff", *options, commit, "--", ".")
    changed += _text(folder, "ls-files", "--others", "--exclude-standard", "-z")
    known = _text(folder, "ls-files", "-z", "--", ":(glob)*/SKILL.md")
    first = [{name.partition("/")[0] for name in text.split("\0")} for text in (changed, known)]
    return first[0], first[1]


def rewritten(commit: str, folder: Path, path: Path) -> str:
    """Return all lines of the files below a path that were changed or deleted since a commit.

    Raises:
        GitError: A git command fails.
    """
    plain = ("--text", "--no-ext-diff", "--no-textconv", "-U1000000")
    return _text(folder, "diff", *plain, "--diff-filter=a", commit, "--", str(path))


def is_dirty(file: Path) -> bool:
    """Return whether a file differs from the last commit or is untracked.

    Ignored files do not count, and nothing does outside a repository or without git.

    Raises:
        GitError: Git refuses to read the repository, or takes too long.
    """
    if shutil.which("git") is None:
        return False
    return bool(git_output(file.parent, "status", "--porcelain", "--", file.name))


def top_of(folder: Path) -> Path:
    """Return the top folder of a work tree."""
    return Path(_text(folder, "rev-parse", "--show-toplevel").removesuffix("\n"))


def from_top(path: Path, top: Path) -> str:
    """Return a path from the top of its repository, "" for that; no link at its end is followed."""
    name = os.path.relpath(Path(os.path.realpath(path.parent), path.name), top)
    return "" if name == "." else name


def literal(name: str) -> str:
    """Return the pathspec of a path from the top of a repository."""
    return f":(top,literal){name}"


def _pathspecs(paths: Iterable[Path], top: Path, magic: str = "top,literal") -> list[str]:
    """Return the pathspecs of the paths that are in a repository."""
    names = (from_top(each, top) for each in paths)
    return [f":({magic}){name}" for name in names if not name.startswith("../")]


def _text(folder: Path, *args: str, given: str = "", **variables: str) -> str:
    """Return the output of a git command; names in it may not be UTF-8.

    Raises:
        GitError: It fails.
    """
    done = run_git(folder, *args, given=given, **variables)
    if done.returncode:
        message = done.stderr.decode("utf-8", "replace").strip().partition("\n")[0]
        raise GitError(f"git {' '.join(args)} fails in {folder}: {message}")
    return done.stdout.decode("utf-8", "surrogateescape")


def git_output(folder: Path, *args: str) -> str | None:
    """Return the output of a git command, None if it fails."""
    done = run_git(folder, *args)
    return None if done.returncode else done.stdout.decode("utf-8", "replace")


def run_git(
    folder: Path, *args: str, given: str = "", **variables: str
) -> subprocess.CompletedProcess[bytes]:
    """Run git in a folder, with text to read and with additional environment variables.

    Raises:
        GitError: Git cannot be run.
    """
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    ours = {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
    try:
        done = subprocess.run(  # noqa: S603 - the arguments are ours, and a ref is no option
            ["git", *_SAFE, *_USUAL, *args],  # noqa: S607 - the git of the user
            cwd=folder,
            env=kept | variables | ours,
            input=given.encode("utf-8", "surrogateescape"),
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        if not folder.exists():
            raise GitError(f"there is no folder {folder}") from None
        raise NoGitError("git is not installed: install it, or compare with a baseline") from None
    except subprocess.TimeoutExpired:
        raise GitError(f"git {args[0]} took over {_SECONDS} s in {folder}") from None
    if b"dubious ownership" in done.stderr:
        raise GitError(f"git does not trust {folder}: git config --global --add safe.directory ...")
    if b"safe.bareRepository" in done.stderr:
        raise GitError(f"{folder} is a bare git repository inside of another: remove its HEAD file")
    return done


def _has_changes(project: Path, folders: Iterable[Path], written: Iterable[Path]) -> bool:
    status = "status", "--porcelain"
    inside = sorted({str(folder) for folder in folders if folder.is_dir()})
    left_out = [*_pathspecs(written, top_of(project), "exclude,top,literal"), _NOT_OURS]
    return bool(
        git_output(project, *status, "--untracked-files=no", "--", ":/", *left_out)
        or (inside and git_output(project, *status, "--", *inside, *left_out))
    )


def _is_shallow(folder: Path) -> bool:
    return git_output(folder, "rev-parse", "--is-shallow-repository") == "true\n"


def _fetch(folder: Path, ref: str) -> str:
    """Return the command that gets a missing ref; a shallow clone also lacks other branches."""
    command = "git fetch --unshallow" if _is_shallow(folder) else "git fetch"
    remote, _, branch = ref.partition("/")
    return f"{command} {remote} {branch}:refs/remotes/{ref}" if branch else command


def _has_skill(top: Path, commit: str, prefix: str) -> bool:
    return git_output(top, "cat-file", "-e", f"{commit}:{prefix}SKILL.md") is not None


def check_out(commit: str, top: Path, pathspecs: Iterable[str], into: Path) -> None:
    """Write files of a commit, and what links among them lead to, through an index of its own.

    Links that lead out of the repository are left out. Unlike ``git archive`` this writes files
    that .gitattributes keeps out of archives too.

    Args:
        commit: The commit.
        top: The top of the repository.
        pathspecs: Which files to write; some may not exist.
        into: The folder that stands for the top.

    Raises:
        SubmoduleError: Some of the files are in a submodule.
        GitError: A git command fails.
    """
    inside, todo, done = into.resolve(), {*pathspecs}, set[str]()
    with tempfile.TemporaryDirectory(prefix="pytest-upskill-") as temporary:
        index = str(Path(temporary, "index"))
        _text(top, "read-tree", commit, GIT_INDEX_FILE=index)
        while todo := todo - done:
            listing = _text(top, "ls-files", "--stage", "-z", "--", *todo, GIT_INDEX_FILE=index)
            entries = [line.partition("\t") for line in listing.split("\0") if line]
            if modules := [name for mode, _, name in entries if mode.startswith("160000")]:
                raise SubmoduleError(
                    f"{modules[0]} is a git submodule, and only its own repository has the files "
                    "that it had: compare with a baseline"
                )
            files, out = "\0".join(name for *_, name in entries), f"--prefix={into}/"
            _text(top, "checkout-index", "-fz", "--stdin", out, given=files, GIT_INDEX_FILE=index)
            done |= todo
            dangling = (Path(os.path.realpath(each)) for each in links(into) if not each.exists())
            within = [each.relative_to(inside) for each in dangling if inside in each.parents]
            todo = {literal(str(each)) for each in within}
    for link in links(into):
        # One that exists is no loop, which could not be resolved.
        if not (link.exists() and link.resolve().is_relative_to(inside)):
            link.unlink()


def links(folder: Path) -> list[Path]:
    """Return the symbolic links in a folder, and itself if it is one."""
    return [path for path in (folder, *folder.rglob("*")) if path.is_symlink()]
