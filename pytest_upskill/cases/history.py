"""A skill at a git ref: its earlier version, and which cases were removed or changed since."""

import glob
import os
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from itertools import chain
from pathlib import Path

from pytest_upskill.cases.catalogue import Catalogues, Folder, catalogue_in
from pytest_upskill.cases.discovery import CaseDiscovery
from pytest_upskill.cases.load import NoSkillError, SkillError, load_skills, pooled
from pytest_upskill.cases.skill import Case, Skill
from pytest_upskill.cases.skill_files import folder_of_cases, version_in
from pytest_upskill.cases.source.document import BadFile
from pytest_upskill.cases.source.files import Unreadable
from pytest_upskill.checks.extensions import Extensions
from pytest_upskill.project import git
from pytest_upskill.project.branch_point import BranchPoint
from pytest_upskill.project.messages import listed

_NAMED = 5
"""Maximum number of cases that a line names."""


def with_history(
    skill: Skill, point: BranchPoint, extensions: Extensions, catalogues: Catalogues
) -> Skill:
    """Return a skill with its version where the branch began, or why it has none.

    The result is the same in every process.

    Args:
        skill: The current skill.
        point: Where the branch began.
        extensions: What plugins add to the format of cases.
        catalogues: What agents see now.

    Raises:
        GitError: A git command fails.
    """
    folder, file = skill.folder.absolute(), skill.case_file.absolute()
    commit = point.commit(folder)
    since = f"{point.ref} ({commit[:7]})"
    beside = () if file.is_relative_to(folder) else (file, *folder_of_cases(file, folder))
    skill = replace(skill, ref=point.ref, history=f"unchanged since {since}: not compared")
    if not point.is_changed(folder, *beside):
        return _with_listing(skill, skill, folder.parent, commit, catalogues)
    with tempfile.TemporaryDirectory(prefix="pytest-upskill-") as temporary:
        try:
            old = git.extract(commit, folder, Path(temporary), *beside)
        except git.SubmoduleError as error:
            return replace(skill, history=f"not compared: {error}", past_unknown=True)
        if old is None:
            skills = git.gone_skills(git.gone_files(commit, folder))
            gone = [old for old, new in skills.items() if new is None]
            names = [os.path.relpath(each, point.project) for each in gone]
            history = _new_or_renamed(since, names)
            return replace(skill, history=history, past_unknown=bool(gone))
        try:
            before = version_in(old, skill)
        except (BadFile, OSError, Unreadable):
            cure = "have a maintainer merge the repair past this check"
            history = f"not compared: its SKILL.md at {since} cannot be read: {cure}"
            return replace(skill, history=history, past_unknown=True)
        skill = _with_case_changes(skill, old, Path(temporary), since, extensions)
        home = Path(git.top_of(folder), old.relative_to(temporary)).parent
    if (before.name, before.text, before.files) == (skill.name, skill.text, skill.files):
        skill = replace(skill, history=f"no text changed since {since}: not compared")
    else:
        skill = replace(skill, before=before, history="")
    return _with_listing(skill, before, home, commit, catalogues)


def _with_listing(
    skill: Skill, before: Skill, home: Path, commit: str, catalogues: Catalogues
) -> Skill:
    """Return a skill with what agents saw of all skills at a commit, if that was something else.

    Args:
        skill: The current skill.
        before: Its version at the commit.
        home: The folder in which it was then.
        commit: The commit.
        catalogues: What agents see now.
    """
    queries = [case for case in skill.cases if case.trigger]
    if not queries:
        return skill
    seen = _catalogues_then(commit, home, skill, catalogues).of(skill, before)
    if seen == (now := catalogues.of(skill)):
        return skill
    gone = [case for case in queries if now.why_unlisted(case) and not seen.why_unlisted(case)]
    return replace(
        skill,
        listed_before=tuple((each.name, each.description) for each in seen.skills),
        queries_of_gone_skills=tuple(case.id for case in gone),
    )


def _catalogues_then(commit: str, home: Path, skill: Skill, now: Catalogues) -> Catalogues:
    """Return what agents saw at a commit; what the repository did not have is as it is now."""
    if now.committed and now.file:
        with suppress(ValueError):
            if content := git.content_at(commit, now.file):
                return replace(now, committed=catalogue_in(content))
    then = _skills_then(commit, home)
    here = skill.folder.absolute().parent
    return replace(now, committed=None, folders={here: then}) if then else now


@cache  # what a commit has never changes
def _skills_then(commit: str, home: Path) -> Folder | None:
    """Return the skills of a folder at a commit; None outside the repository or with submodules."""
    top = git.top_of(home)
    inner = git.from_top(home.resolve(), top)
    with tempfile.TemporaryDirectory(prefix="pytest-upskill-") as temporary:
        # The skills, and links to others.
        pathspecs = [f":(top,glob){Path(glob.escape(inner), each)}" for each in ("*/SKILL.md", "*")]
        with suppress(git.SubmoduleError):
            if home.resolve().is_relative_to(top):
                git.check_out(commit, top, pathspecs, Path(temporary))
                return Catalogues(root=Path(temporary)).folder(Path(temporary, inner))
    return None


def other_skills_changed(commit: str, home: Path, catalogues: Catalogues) -> bool:
    """Return whether the skills of a folder have other names or descriptions than at a commit.

    Raises:
        GitError: A git command fails.
    """
    if not git.is_changed(commit, home):
        return False
    then = _skills_then(commit, home)
    return then is None or then.catalogue != catalogues.folder(home).catalogue


def _new_or_renamed(since: str, deleted: Sequence[str]) -> str:
    """Describe a skill that did not exist then, or may be one of ``deleted``, renamed."""
    if not deleted:
        return f"new since {since}: not compared"
    return (
        f"not compared: it did not exist at {since}, and {', '.join(deleted)} is gone: if it was "
        "renamed, keep its cases or most of its SKILL.md, and git add them, so that git finds it; "
        "if not, add it in a change of its own"
    )


def _named(case: str) -> str:
    return f"case {case}" if case.isdecimal() else case


def _with_case_changes(
    skill: Skill, old: Path, top: Path, since: str, extensions: Extensions
) -> Skill:
    """Return a skill with what is known of its cases then: other cases may hide that it is worse.

    Args:
        skill: The current skill.
        old: Its folder as it was.
        top: The top of the repository as it was.
        since: What it is compared with, in words.
        extensions: What plugins add to the format of cases.
    """
    try:
        before = _cases_then(skill, old, top, extensions)
    except SkillError:
        unknown = f"those at {since} cannot be read"
        return replace(skill, case_changes=f"cases may have been removed: {unknown}")
    if before is None:
        return skill
    # An old case that is skipped for lack of something outside this folder was not removed.
    then = {case.id: _content(case) for case in before.cases if not case.skip}
    now = {case.id: _content(case) for case in skill.cases}
    gone = [name for name in then if name not in now]
    edited = [name for name, case in now.items() if then.get(name) != case]
    new = [replace(now[name], id="") for name in edited if name not in then]
    # Of a skill that has not moved, a file that has gone is named as such.
    folder = skill.folder.absolute()
    is_moved = old != top / git.from_top(folder, git.top_of(folder))
    files = {case.id: skill.case_file / case.file for case in before.cases}
    lost = [name for name in gone if is_moved or files[name].exists()]
    removed = [name for name in lost if replace(then[name], id="") not in new]  # else renamed
    changed = [name for name in edited if name in then]
    tasks = [_task(case) for case in then.values()]
    if before.gate != skill.gate:
        changed.append("the gate")
    is_hidden_now = skill.hidden and not before.hidden
    unasked = [case.id for case in skill.cases if case.trigger and is_hidden_now]
    kinds = (("removed", removed), ("changed", changed), ("not asked any more", unasked))
    named = ((kind, listed([*map(_named, names)], _NAMED)) for kind, names in kinds if names)
    what = "; ".join(f"{kind}: {names}" for kind, names in named)
    return replace(
        skill,
        case_changes=f"cases since {since}: {what}" if what else "",
        other_cases=tuple(name for name in edited if then and _task(now[name]) not in tasks),
    )


def _cases_then(skill: Skill, old: Path, top: Path, extensions: Extensions) -> Skill | None:
    """Return a skill with the cases that it had, None if it had none in this file.

    If its case file did not exist, those of the case files that have gone count: it may be one of
    them by another name.

    Raises:
        SkillError: The file cannot be read.
    """
    folder, file = skill.folder.absolute(), skill.case_file.absolute()
    if file.is_relative_to(folder):
        file = old / file.relative_to(folder)
    else:
        file = top / git.from_top(file, git.top_of(folder))
    # A setting may say whose the cases are.
    owners = () if skill.shares_file else (("*" if skill.suite else file.name, old),)
    discovery = CaseDiscovery(root=top, patterns=(file.name,), owners=owners)
    files = [file]
    if file.is_dir():
        files = sorted(filter(discovery.is_case_file, file.rglob("*.*")))
    elif not file.exists():
        inside = (each for each in discovery.case_files_of(old) if each.is_relative_to(old))
        files = [each for each in inside if not (folder / each.relative_to(old)).exists()]
    found: list[Skill] = []
    for each in files:
        with suppress(NoSkillError):
            skills = load_skills(each, extensions=extensions, discovery=discovery)
            found += (each for each in skills if each.folder == old)
    found = [each for each in pooled(found) if each.suite == file or not file.is_dir()]
    cases = tuple(chain.from_iterable(each.cases for each in found))
    return replace(found[0], cases=cases) if found else None


def _content(case: Case) -> Case:
    return replace(case, line=1, column=1, file="", tags=(), quote="")


def _task(case: Case) -> Case:
    """Return what a case asks and expects, by any name, however often the answer must be right."""
    asked = replace(_content(case), id="", models=None, train=False, skip=None)
    return replace(asked, min_pass_rate=None, process=())
