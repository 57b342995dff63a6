"""Blank keys, and the user names and passwords of URLs, out of what is shown or written."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

HIDDEN = "***"
"""What stands in the place of a secret."""

LEAST_SECRET = 8
"""Characters of a secret; what is shorter, such as EMPTY, is a placeholder, which answers hold."""

# A server may wrap a long line. Possessive: no text makes it go back and try again.
_LINE_BREAK = r"(?:[^\S\n]*+\n\s*+)?"
_USERINFO = re.compile(r"(?<=://)[^/\s]*@")


class Redactor:
    """Knows every key in use, and finds each in the forms in which servers echo it.

    These are the key itself, percent-encoded, escaped for JSON or HTML, broken over lines; and of a
    user name and password, also what HTTP's Basic scheme makes of them. A key that somebody cut,
    encrypted or encoded in another way is not found.

    Args:
        secrets: What is known from the start.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._known: frozenset[str] = frozenset()
        self._pattern: re.Pattern[str] | None = None
        self.learn(*secrets)

    def learn(self, *secrets: str) -> None:
        """Add secrets; what is shorter than `LEAST_SECRET` is none."""
        known = self._known | {each for each in secrets if len(each) >= LEAST_SECRET}
        if known != self._known:
            # The longest first: one may begin with another.
            forms = map(_pattern, sorted(known, key=len, reverse=True))
            self._pattern = re.compile("|".join(forms))
            self._known = known

    def redact(self, text: str) -> str:
        """Replace every secret in ``text`` with `HIDDEN`."""
        return text if self._pattern is None else self._pattern.sub(HIDDEN, text)

    def redact_json(self, value: Any) -> Any:
        """Redact every text of a JSON value, the keys of its objects too."""
        if isinstance(value, str):
            return self.redact(value)
        if isinstance(value, Mapping):
            return {self.redact_json(key): self.redact_json(part) for key, part in value.items()}
        return [self.redact_json(part) for part in value] if isinstance(value, list) else value


def basic(userinfo: str) -> str:
    """Encode ``user:password``, as it stands in a URL, for HTTP's Basic scheme (RFC 7617)."""
    user, _, password = userinfo.partition(":")
    return base64.b64encode(f"{unquote(user)}:{unquote(password)}".encode()).decode()


def secrets_of_userinfo(userinfo: str) -> tuple[str, ...]:
    """List what must not be shown of ``user:password``, as it stands in a URL."""
    user, _, password = map(unquote, userinfo.partition(":"))
    encoded = basic(userinfo).rstrip("=")
    url_safe = encoded.translate(str.maketrans("+/", "-_"))
    return tuple(each for each in (user, password, encoded, url_safe) if each)


def split_userinfo(url: str) -> tuple[str, str]:
    """Return a URL without its user name and password, and these as they stand there."""
    userinfo, at, host = urlsplit(url).netloc.rpartition("@")
    return (urlsplit(url)._replace(netloc=host).geturl(), userinfo) if at else (url, "")


def without_userinfo(text: str) -> str:
    """Hide the user names and passwords of the URLs in a text."""
    return _USERINFO.sub(f"{HIDDEN}@", text)


def without_credentials(spec: str) -> str:
    """Hide what could be a credential in a text that should hold one URL and may be malformed.

    That is everything from ``://`` to the last ``@``, and a query or fragment.
    """
    scheme, mark, rest = spec.partition("://")
    rest = re.sub(".*@", f"{HIDDEN}@", rest, flags=re.DOTALL)
    return scheme + mark + re.sub("([?#]).+", rf"\1{HIDDEN}", rest, flags=re.DOTALL)


def _pattern(secret: str) -> str:
    return _LINE_BREAK.join(map(_character, secret))


def _character(character: str) -> str:
    """Write a pattern for one character of a secret."""
    if character.isascii() and character.isalnum():
        return character
    encoded = "".join(f"%(?:25)*{byte:02x}" for byte in character.encode("utf-8", "replace"))
    escaped = {
        character,
        f"\\{character}",
        json.dumps(character)[1:-1],
        f"\\u{ord(character):04x}",
        html.escape(character),
    }
    forms = "|".join(map(re.escape, sorted(escaped, key=len, reverse=True)))
    # A line may have been broken at a space, in the place of it.
    return f"(?:{forms}|(?i:{encoded}){'|' * character.isspace()})"
