"""Errors of hosts: what their bodies and headers contain, and how to fix the request."""

import re
import time
from collections.abc import Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from http import HTTPStatus

from pytest_upskill.models.hosts import BY_PREFIX
from pytest_upskill.models.keys import NO_KEY, Endpoint
from pytest_upskill.models.model import Model
from pytest_upskill.models.request import ProviderError
from pytest_upskill.project.redaction import without_userinfo

WEB_PAGE = "a web page"
"""What stands for the text of a page."""

_MAX_CHARS = 200
_PAGE = re.compile(r"\s*<(!doctype )?html", re.IGNORECASE)
_TITLE = re.compile("<title>([^<]*)", re.IGNORECASE)


def error_message(body: object) -> str:
    """Return the message in an error body of any known shape, on one line, shortened."""
    while isinstance(body, Mapping):
        body = body.get("error") or body.get("message") or body.get("detail")
    text = str(body or "")
    if _PAGE.match(text):
        title = _TITLE.search(text)
        text = f"{WEB_PAGE} ({title[1].strip()})" if title else WEB_PAGE
    text = one_line(text)
    return text if len(text) <= _MAX_CHARS else text[:_MAX_CHARS] + "..."


def code_of(body: object) -> object:
    """Return OpenAI's error code from a body, None if there is none.

    Args:
        body: The body, or its ``error`` object, which is what the SDK returns.
    """
    inner = body.get("error", body) if isinstance(body, Mapping) else None
    return inner.get("code") if isinstance(inner, Mapping) else None


def one_line(text: str) -> str:
    """Return a text on one line, with printable characters only."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def retry_after(headers: Mapping[str, str], details: str = "") -> float | None:
    """Return the seconds to wait, by the headers or the body of an error.

    Args:
        headers: They may have ``retry-after-ms`` or RFC 9110's ``Retry-After``.
        details: The body as JSON; Google's has a ``RetryInfo``.
    """
    if delay := _RETRY_DELAY.search(details):
        return float(delay[1])
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        with suppress(ValueError):
            seconds = float(headers.get(name, "")) / unit
            return seconds if 0 < seconds < float("inf") else None
    try:
        at = parsedate_to_datetime(headers.get("retry-after", "")).timestamp()
    except (ValueError, OverflowError):
        return None
    return max(0.0, at - time.time())


_RETRY_DELAY = re.compile(r'"retryDelay": "(\d+(?:\.\d+)?)s"')

DAILY = re.compile(r"per[ _-]?day|daily|\b[RT]PD\b", re.IGNORECASE)
"""Messages and ids of limits that are renewed once a day."""

_FILTERED = re.compile(
    r"content[_ ](filter|management policy|policy[_ ]violation)|responsible ?ai", re.IGNORECASE
)
_STREAM_ONLY = re.compile(
    r"(only|must|requires?|need).{0,40}\bstream|\bstream(ing)?\b.{0,40}\b(must|required|only|true)"
    r"|non-?stream\w*.{0,40}\b(not|un)|enable the stream",
    re.IGNORECASE,
)


def is_filtered(body: object) -> bool:
    """Return whether an error is that of a content filter, which refused question or answer."""
    return bool(_FILTERED.search(f"{code_of(body)} {error_message(body)}"))


def wants_stream(error: ProviderError) -> bool:
    """Return whether a host refused a request because it is not for a stream."""
    return error.status in {400, 405, 406, 422, 501} and bool(_STREAM_ONLY.search(str(error)))


NOT_SERVED = frozenset({404, 405, 410, 501})
"""Statuses of a host that serves nothing at this URL, or no such requests."""
REDIRECTS = frozenset({301, 302, 303, 307, 308})


def cure(
    status: int, message: str, headers: Mapping[str, str], model: Model, endpoint: Endpoint
) -> str:
    """Return what an HTTP error means and what to do about it, "" if its message says enough."""
    key = "check" if endpoint.key != NO_KEY else "no key was sent: set"
    # Without the parts that may contain a key.
    target = re.split(r"[?#]", without_userinfo(headers.get("location", "")), maxsplit=1)[0]
    is_said = model.name in message and " not " in message
    unknown = "check its name, or the URL" if is_said else f"no model {model.name!r} at"
    later = "run again later, which requests only the rest"
    cures = {
        **dict.fromkeys((401, 403), f"{key} {endpoint.key_variable}"),
        402: f"check the billing of the account that owns {endpoint.key_variable}",
        407: refused_by_proxy(endpoint),
        429: f"{later}, or lower --upskill-concurrency",
        **dict.fromkeys((500, 502, 503, 504, 529), later),
        **dict.fromkeys(NOT_SERVED, f"{endpoint.url} serves no models{url_hint(endpoint)}"),
        404: f"{unknown} {endpoint.url}{url_hint(endpoint)}",
        **dict.fromkeys(REDIRECTS, f"{endpoint.host} redirects to {target or 'nowhere'}"),
    }
    by_proxy = status == HTTPStatus.FORBIDDEN and WEB_PAGE in message
    return cures[407] if by_proxy else cures.get(status, "")


def url_hint(endpoint: Endpoint) -> str:
    """Return what may be wrong with the base URL of an endpoint, "" if it looks right."""
    looks_right = endpoint.wire != "openai" or endpoint.client or "/v1" in endpoint.url
    return "" if looks_right else ", or the base URL lacks /v1"


def refused_by_proxy(endpoint: Endpoint) -> str:
    """Return what to do about a proxy or firewall that refuses a host."""
    return (
        f"a proxy or firewall refuses {endpoint.host}: check the user and password in HTTPS_PROXY "
        "or HTTP_PROXY, ask for access, or set NO_PROXY"
    )


def connection_hint(cause: BaseException, endpoint: Endpoint) -> str:
    """Return what to check after a failed connection to a host.

    Args:
        cause: The error of the HTTP client, or of the socket.
        endpoint: The host.
    """
    if endpoint.url.startswith("https:") and "SSL" in str(cause):
        return (
            "check its certificate, set SSL_CERT_FILE to the certificates (PEM) of your own "
            "authority, or write http:// if it has no TLS"
        )
    return (
        f"is it running and reachable, and is {endpoint.url} right (HTTPS_PROXY, HTTP_PROXY and "
        "NO_PROXY apply)?"
    )


def refused_parameter(model: Model) -> str:
    """Return which parameters a model's host is known to refuse, and the cure; "" for none."""
    host, vendor = BY_PREFIX.get(model.provider), model.vendor
    refused: tuple[str, ...] = vendor.refuses if vendor else ()
    if vendor is None and host is not None and host.wire == "anthropic":
        refused = ("seed",)
    keys = [entry.partition("=")[0] for entry in model.parameters.entries]
    wrong_keys = [key for key in keys if key in refused]
    if not wrong_keys:
        return ""
    return (
        f"--upskill-param: the host of {model.label} refuses {' and '.join(wrong_keys)}: write "
        f"LABEL:{wrong_keys[0]}=... for each of the other models"
    )
