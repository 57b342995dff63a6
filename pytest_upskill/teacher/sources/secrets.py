"""Removal of keys, tokens, passwords and e-mail addresses from text that is about to be sent."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType

_KINDS: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {
        "private key": re.compile(
            r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
            re.DOTALL,
        ),
        "key": re.compile(
            r"\b(?:sk-ant-[\w-]{20,}|sk-(?:proj-|or-v1-|svcacct-)?[\w-]{20,}|gh[pousr]_\w{30,}"
            r"|github_pat_\w{30,}|glpat-[\w-]{20,}|hf_\w{20,}|A(?:KIA|SIA)[A-Z0-9]{16}"
            r"|xox[abprs]-[\w-]{10,}|AIza[\w-]{35}|npm_\w{36}|pypi-[\w-]{50,}|gsk_\w{20,})"
        ),
        "token": re.compile(
            r"\beyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{5,}|(?i:\b(?:bearer|basic)\s+)[\w.~+/=-]{16,}"
        ),
        "password": re.compile(
            r"(?i:(?<![a-z])(?:[a-z0-9_-]*(?:password|passwd|passphrase|secret|token|api[_-]?key"
            r"|access[_-]?key|private[_-]?key|client[_-]?secret))(?:\\?[\"'])?\s*[=:]\s*)"
            r"(?:\\?\"[^\"\s\\]{8,}\\?\"|'[^'\s]{8,}'|[^\s'\"\\,;)}\]<>$]{8,})"
        ),
        "credential in a URL": re.compile(r"(?<=://)[^/\s:@\"']+:[^/\s@\"']+@"),
        "e-mail address": re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}\b"),
    }
)
"""Patterns of what is removed, by kind; tried in this order."""


def redact(text: str) -> tuple[str, Counter[str]]:
    """Return a text without secrets, and how many of each kind were removed."""
    removed = Counter[str]()
    for kind, pattern in _KINDS.items():
        text, times = pattern.subn(f"[{kind} removed]", text)
        if times:
            removed[kind] += times
    return text, removed
