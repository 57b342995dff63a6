"""Which files are case files, according to the ini file."""

from __future__ import annotations

import pytest

from pytest_upskill.formats.discovery import Places

_PLACES = pytest.StashKey[Places]()


def places_of(config: pytest.Config) -> Places:
    """Return which files are case files according to the ini file; read once per session."""
    if _PLACES not in config.stash:
        entries = [entry.partition("=") for entry in config.getini("upskill_case_files")]
        config.stash[_PLACES] = Places(
            root=config.rootpath,
            patterns=tuple(pattern for pattern, _, _ in entries),
            owners=tuple((name, config.rootpath / skill) for name, _, skill in entries if skill),
        )
    return config.stash[_PLACES]
