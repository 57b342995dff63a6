"""How strictly a program on input that nobody trusts is confined."""

from __future__ import annotations

from typing import Literal, get_args

Level = Literal["auto", "bwrap", "landlock", "limits", "off"]
LEVELS: tuple[Level, ...] = get_args(Level)
"""``--upskill-sandbox``; ``auto`` is the strongest of the others that works here."""
