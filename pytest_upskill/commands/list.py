"""``pytest-upskill list``: the skills below a folder, with their cases, and what these need."""

import argparse
import os
import shlex
import shutil
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from pytest_upskill.cases.discovery import CaseDiscovery, skill_and_name_meant, skill_folders
from pytest_upskill.cases.load import SkillError, load_skills
from pytest_upskill.cases.skill import Skill
from pytest_upskill.commands import command
from pytest_upskill.project.messages import counted, listed, safe_line
from pytest_upskill.trials.needs import measured_by, skip_lines, why_skipped


def add(parser: command.Parser) -> None:
    """Add the arguments of the command."""
    parser.set_defaults(run=_run)
    help_text = "folder to search (default: skills, else this folder)"
    parser.add_argument("folder", nargs="?", type=Path, help=help_text)
    parser.option("-d --dir", "DIR", "the same", type=Path)
    parser.flag("-v --verbose", "list the files of each skill")


def _run(options: argparse.Namespace) -> int:
    top = options.folder or options.dir or (Path("skills") if Path("skills").is_dir() else Path())
    command.check_exists(top)
    folders = sorted(skill_folders(top))
    if not folders:
        raise command.no_skill(top)
    command.say(str(top), *_skill_lines(top, folders, verbose=options.verbose))
    misnamed = command.misnamed_skills(top)
    command.say(*(f"  {file} is not read: rename it to SKILL.md" for file in misnamed))
    return command.PASSED


def _skill_lines(top: Path, folders: Sequence[Path], *, verbose: bool) -> Iterator[str]:
    width = max(40, shutil.get_terminal_size().columns)
    discovery = CaseDiscovery()
    for folder in folders:
        name, description, lines = _describe(folder, discovery)
        where = folder.relative_to(top).as_posix()
        yield f"  {name}" if where in {name, "."} else f"  {name} ({where})"
        if description:
            yield f"    {textwrap.shorten(description, width - 4, placeholder='...')}"
        yield from (f"    {line}" for line in lines)
        if verbose:
            files = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
            yield from (f"    {file.as_posix()}" for file in files)


def _describe(folder: Path, discovery: CaseDiscovery) -> tuple[str, str, list[str]]:
    """Return the name of a skill, its description, and lines about its cases."""
    try:
        skill = load_skills(folder / "SKILL.md")[0]
    except SkillError as error:
        return folder.name, "", str(error).splitlines()
    with_cases, problems = command.own_cases(folder, discovery=discovery)
    lines = [*problems, *_case_lines(with_cases)]
    if not lines:
        meant = [(file.name, skill_and_name_meant(file)[1]) for file in sorted(folder.iterdir())]
        lines = [f"{name} is not read: rename it to {right}" for name, right in meant if right]
    if not lines:
        lines = [f"no cases: {command.PROGRAM} init {shlex.quote(str(folder))} writes the first"]
    return skill.name, safe_line(skill.description), lines


def _case_lines(skills: Sequence[Skill]) -> Iterator[str]:
    """Yield how the cases of a skill can be measured, and what they need."""
    cases = [case for skill in skills for case in skill.cases]
    if not cases:
        return
    files = listed([os.path.relpath(skill.case_file, skill.folder) for skill in skills])
    ways = measured_by(cases)
    yield f"{counted(len(cases), 'case')} in {files}{f': {ways}' if ways else ''}"
    reasons = (
        why_skipped(case, chooses=not case.is_answered, has_judge=False, is_agent=False)
        for case in cases
    )
    yield from (f"  {line}" for line in skip_lines(filter(None, reasons), len(cases)))
