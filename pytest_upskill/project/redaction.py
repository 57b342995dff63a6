"""Redaction of keys, and of user names and passwords in URLs, in all output."""

import base64
import html
import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

HIDDEN = "***"
"""The replacement of a secret."""

LEAST_SECRET = 8
"""Minimum length of a secret; shorter values, such as EMPTY, are words that answers contain."""

# A server may wrap a long line. The quantifiers are possessive, which prevents backtracking.
_LINE_BREAK = r"(?:[^\S\n]*+\n\s*+)?"
_USERINFO = re.compile(r"(?<=://)[^/\s]*@")


class Redactor:
    """A redactor of all known keys, in the forms in which servers echo them.

    These are the key itself, percent-encoded, escaped for JSON or HTML, or wrapped over lines. A
    key that was shortened, encrypted or encoded in another way is not found.

    Args:
        secrets: The secrets that are known from the start.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._known: frozenset[str] = frozenset()
        self._pattern: re.Pattern[str] | None = None
        self.learn(*secrets)

    def learn(self, *secrets: str) -> None:
        """Add secrets; values shorter than `LEAST_SECRET` are ignored."""
        known = self._known | {each for each in secrets if len(each) >= LEAST_SECRET}
        if known != self._known:
            # The longest first, because one may be a prefix of another.
            longest = sorted(known, key=len, reverse=True)
            forms = (_LINE_BREAK.join(map(_character, secret)) for secret in longest)
            self._pattern = re.compile("|".join(forms))
            self._known = known

    def redact(self, text: str) -> str:
        """Return a text with every secret replaced by `HIDDEN`."""
        return text if self._pattern is None else self._pattern.sub(HIDDEN, text)

    def redact_json(self, value: Any) -> Any:
        """Return a JSON value with every secret in its texts and keys replaced by `HIDDEN`."""
        return map_texts(value, self.redact)


def map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Return a JSON value with each of its texts and keys changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {change(str(key)): map_texts(part, change) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [map_texts(part, change) for part in value]
    return value


def basic(userinfo: str) -> str:
    """Return ``user:password`` from a URL, encoded for HTTP's Basic scheme (RFC 7617)."""
    user, _, password = userinfo.partition(":")
    return base64.b64encode(f"{unquote(user)}:{unquote(password)}".encode()).decode()


def secrets_of_userinfo(userinfo: str) -> tuple[str, ...]:
    """Return the secrets in ``user:password`` from a URL: both parts, and their Basic encodings."""
    user, _, password = map(unquote, userinfo.partition(":"))
    encoded = basic(userinfo).rstrip("=")
    url_safe = encoded.translate(str.maketrans("+/", "-_"))
    return tuple(each for each in (user, password, encoded, url_safe) if each)


def split_userinfo(url: str) -> tuple[str, str]:
    """Return a URL without its ``user:password``, and that part, "" if there is none."""
    userinfo, at, host = urlsplit(url).netloc.rpartition("@")
    return (urlsplit(url)._replace(netloc=host).geturl(), userinfo) if at else (url, "")


def without_userinfo(text: str) -> str:
    """Return a text with the user names and passwords of its URLs hidden."""
    return _USERINFO.sub(f"{HIDDEN}@", text)


def without_credentials(spec: str) -> str:
    """Return a text, which should be a URL but may be malformed, with possible credentials hidden.

    These are everything from ``://`` to the last ``@``, the query and the fragment.
    """
    scheme, mark, rest = spec.partition("://")
    rest = re.sub(".*@", f"{HIDDEN}@", rest, flags=re.DOTALL)
    return scheme + mark + re.sub("([?#]).+", rf"\1{HIDDEN}", rest, flags=re.DOTALL)


def _character(character: str) -> str:
    """Return a pattern that matches a character of a secret in all of its encodings."""
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
    # A line break may have replaced a space.
    return f"(?:{forms}|(?i:{encoded}){'|' * character.isspace()})"
