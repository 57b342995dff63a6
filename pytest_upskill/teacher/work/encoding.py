"""Writing a text as the file that it replaces is written."""

from __future__ import annotations

import codecs


def byte_order_mark(content: bytes) -> bytes:
    """Return the byte order mark that a file begins with, if it does."""
    return codecs.BOM_UTF8 if content.startswith(codecs.BOM_UTF8) else b""


def encoded_like(old: bytes, text: str) -> bytes:
    """Return a text with the line ends and the byte order mark of what it replaces."""
    ends = "\r\n" if b"\r\n" in old else "\n"
    return byte_order_mark(old) + text.replace("\n", ends).encode()
