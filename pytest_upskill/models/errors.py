"""Errors of hosts: what their bodies and headers contain, and how to fix the request."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from urllib.parse import urlsplit

from pytest_upskill.models.hosts import BY_PREFIX, HOSTS
from pytest_upskill.models.keys import Endpoint
from pytest_upskill.models.model import Model
from pytest_upskill.models.request import ProviderError
from pytest_upskill.project.redaction import without_userinfo

WEB_PAGE = "a web page"
"""What stands for the text of a page."""

_MAX_CHARS = 200
_PAGE = re.compile(r"\s*<(!doctype )?html", re.IGNORECASE)
_TITLE = re.compile("<title>([^<]*)", re.IGNORECASE)


def redirect_target(location: str) -> str:
    """Return the target of a redirect, without parts that may contain a key."""
    return re.split(r"[?#]", without_userinfo(location), maxsplit=1)[0] or "nowhere"


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


def is_filtered(body: object) -> bool:
    """Return whether an error code or message is that of a content filter."""
    return bool(FILTERED.search(f"{code_of(body)} {error_message(body)}"))


def http_status_of(code: object) -> int | None:
    """Return the HTTP status that an error code stands for, None if it stands for none."""
    if isinstance(code, bool) or not re.fullmatch("[45][0-9]{2}", str(code)):
        return None
    return int(str(code))


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
        try:
            seconds = float(headers.get(name, "")) / unit
        except ValueError:
            continue
        return seconds if 0 < seconds < float("inf") else None
    try:
        at = parsedate_to_datetime(headers.get("retry-after", "")).timestamp()
    except (ValueError, OverflowError):
        return None
    return max(0.0, at - time.time())


_RETRY_DELAY = re.compile(r'"retryDelay": "(\d+(?:\.\d+)?)s"')

DAILY = re.compile(r"per[ _-]?day|daily|\b[RT]PD\b", re.IGNORECASE)
"""Messages and ids of limits that are renewed once a day."""

WAIT_A_DAY = (
    "the limit of the day is used up: run again when it is renewed, as answers are recorded, or "
    "raise it"
)
"""How to go on after a daily limit."""

LOOK_AT_SERVER = (
    "the server or a proxy ended it: look into the server's log, or raise the proxy's timeout"
)
"""What to do about a reply that broke off."""

FILTERED = re.compile(
    r"content[_ ](filter|management policy|policy[_ ]violation)|responsible ?ai", re.IGNORECASE
)
"""Messages of a content filter that refused the question or the answer."""

_STREAM_ONLY = re.compile(
    r"(only|must|requires?|need).{0,40}\bstream|\bstream(ing)?\b.{0,40}\b(must|required|only|true)"
    r"|non-?stream\w*.{0,40}\b(not|un)|enable the stream",
    re.IGNORECASE,
)


def wants_stream(error: ProviderError) -> bool:
    """Return whether a host refused a request because it is not for a stream."""
    is_refusal = error.status in {400, 405, 406, 422, 501}
    return is_refusal and _STREAM_ONLY.search(str(error)) is not None


CHECK_CERTIFICATE = (
    "check its certificate, set SSL_CERT_FILE to the certificates (PEM) of your own authority, or "
    "write http:// if it has no TLS"
)
"""What to do about a TLS error."""


def not_served(status: int, model: Model, endpoint: Endpoint) -> str:
    """Return what a reply with status 404, 405, 410 or 501 means, and what may be wrong."""
    problem = f"{endpoint.url} serves no models"
    if status == HTTPStatus.NOT_FOUND:
        problem = f"no model {model.name!r} at {endpoint.url}"
    return problem + url_hint(endpoint)


def url_hint(endpoint: Endpoint) -> str:
    """Return what may be wrong with the base URL of an endpoint, "" if it looks right."""
    is_known = any(endpoint.url == host.url for host in HOSTS)
    if endpoint.wire != "openai" or is_known or endpoint.url.endswith("/v1") or endpoint.client:
        return ""
    if endpoint.host.endswith(BY_PREFIX["azure"].domains):
        return f", or write azure:DEPLOYMENT@https://{endpoint.host}"
    return ", or the base URL lacks /v1"


def connection_hint(cause: BaseException, endpoint: Endpoint) -> str:
    """Return what to check after a failed connection to a host.

    Args:
        cause: The error of the HTTP client, or of the socket.
        endpoint: The host.
    """
    message = str(cause)
    if endpoint.url.startswith("https:") and "SSL" in message:
        return CHECK_CERTIFICATE
    if type(cause).__name__ == "ProxyError":
        login = f"check the user and password{proxy_of(endpoint)}"
        return login if "407" in message else refused_by_proxy(endpoint)
    proxy = proxy_of(endpoint, preposition="through")
    bypass = " (or set NO_PROXY)" if proxy else ""
    return f"is it running, reachable{proxy}{bypass}, and is its URL right?"


def broke_off(cause: BaseException) -> bool:
    """Return whether the connection ended within a reply."""
    return "incomplete" in str(cause) or "complete message" in str(cause)


def refused_by_proxy(endpoint: Endpoint) -> str:
    """Return what to do about a proxy or firewall that refuses a host."""
    return (
        f"a proxy or firewall refuses {endpoint.host}: ask for access to it{proxy_of(endpoint)}, "
        "or set NO_PROXY if it can be reached without"
    )


def proxy_of(endpoint: Endpoint, *, preposition: str = "of") -> str:
    """Return a phrase with the proxy that the environment sets for a host, "" for none."""
    # Imported here: it takes 10 ms, and most runs have no such error.
    from urllib.request import getproxies, proxy_bypass

    url = urlsplit(endpoint.url)
    if proxy_bypass(url.hostname or ""):
        return ""
    schemes = (scheme for scheme in (url.scheme, "all") if scheme in getproxies())
    return next((f" {preposition} the proxy in {scheme}_proxy" for scheme in schemes), "")


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
