"""Levels of the sandbox; `confinement.py` starts a program at each."""

from __future__ import annotations

from typing import Literal, get_args

Level = Literal["auto", "bwrap", "landlock", "limits", "off"]
LEVELS: tuple[Level, ...] = get_args(Level)
"""Values of ``--upskill-sandbox``; ``auto`` is the strongest level that works here."""
