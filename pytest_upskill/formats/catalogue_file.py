"""The committed catalogue file."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from pytest_upskill.formats.catalogue import Catalogue, ListedSkill
from pytest_upskill.repository.files import read_state, write_file

_FORMAT = 1


class CatalogueError(Exception):
    """A catalogue file cannot be used; the message has its name and the cure."""


class _File(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)
    format: int
    skills: list[ListedSkill]


def read_catalogue(file: Path) -> Catalogue:
    """Read a catalogue file.

    Raises:
        CatalogueError: The file cannot be read, is not a catalogue, or has a newer format.
    """
    cure = "restore it from git, or write it again with --upskill-catalogue-update"
    try:
        found = _File.model_validate_json(read_state(file))
    except OSError as error:
        raise CatalogueError(f"{file}: cannot be read: {error.strerror}: {cure}") from None
    except ValidationError:
        raise CatalogueError(f"{file}: not a catalogue: {cure}") from None
    if found.format > _FORMAT:
        raise CatalogueError(
            f"{file}: format {found.format} is newer than this pytest-upskill reads ({_FORMAT}): "
            "pip install -U pytest-upskill"
        )
    return Catalogue.of(found.skills)


def write_catalogue(file: Path, catalogue: Catalogue) -> bool:
    """Write a catalogue file with a line for each skill, and return whether it changed.

    Raises:
        OSError: The file cannot be written.
    """
    lines = ",\n".join(
        "  " + json.dumps(asdict(skill), ensure_ascii=False) for skill in catalogue.skills
    )
    text = f'{{\n "format": {_FORMAT},\n "skills": [\n{lines}\n ]\n}}\n'.encode()
    with suppress(FileNotFoundError):
        if read_state(file) == text:
            return False
    write_file(file, text, mode=0o644)
    return True
