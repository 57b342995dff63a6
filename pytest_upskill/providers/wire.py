"""What both SDKs are asked alike, and what comes of it: one kind of error, clean text."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from json import JSONDecodeError
from typing import Any

import httpx2

from pytest_upskill.completion import MAX_TOKENS_COUNTED, Completion, ProviderError, clean
from pytest_upskill.model import Model
from pytest_upskill.providers.complaints import FILTERED, LOADING, cure
from pytest_upskill.providers.connections import MOST_BYTES, NOT_SENT, ReplyTooLong
from pytest_upskill.providers.keys import Endpoint
from pytest_upskill.sanitize.redaction import without_userinfo

_DETAIL_CHARS = 200
_FATAL = frozenset({301, 302, 303, 307, 308, 401, 402, 403, 404})
_PASSING = frozenset({408, 409, 429})


def part(body: object, name: str) -> object:
    """Read a part of a reply that a server may leave out, as it may what it is a part of."""
    return body.get(name) if isinstance(body, Mapping) else None


def count(usage: object, name: str) -> int | None:
    """Read a token count, None where there is none or it cannot be one."""
    value = part(usage, name)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value <= MAX_TOKENS_COUNTED else None


class InsteadOfAnswer(LookupError):  # noqa: N818  what a reply is, not what failed here
    """A part of a reply that is an error in the place of an answer.

    Attributes:
        body: What the host says of it.
    """

    def __init__(self, body: Mapping[str, Any]) -> None:
        super().__init__()
        self.body = body


class _Filtered(Exception):  # noqa: N818  what a reply is, not what failed here
    """A status that says what others say with 200: a content filter refused. In its words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What came back with status 200: a JSON object, of which nothing more is known."""

    body: Mapping[str, Any]
    """Without keys."""
    headers: Mapping[str, str]
    """Without keys; names in lower case."""
    latency_s: float

    @property
    def served_model(self) -> str | None:
        """The model that it says it is from."""
        name = self.body.get("model")
        return clean(name) if isinstance(name, str) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One attempt: who is asked, where, and for how many seconds at most."""

    model: Model
    endpoint: Endpoint
    timeout: float

    async def complete(
        self,
        sent: Awaitable[httpx2.Response],
        sdk: Any,
        read: Callable[[Reply, Endpoint], Completion],
    ) -> Completion:
        """Await an SDK's call and read the answer; turn all else into one kind of error.

        Args:
            sent: The SDK's call. Its own classes of replies would take a tenth of a request's CPU
                time, and validate nothing.
            sdk: The module with the SDK's exceptions, named alike in both.
            read: Finds the answer in a reply; where it stumbles over what is there, there is none.
                It raises InsteadOfAnswer where the host says so.

        Raises:
            ProviderError: There is no usable reply.
        """
        try:
            reply = await self._reply(sent, sdk)
            return read(reply, self.endpoint)
        except _Filtered as refusal:
            return Completion(
                text=self.endpoint.redact(clean(str(refusal))),
                input_tokens=None,
                output_tokens=None,
                stop_reason="refusal",
            )
        except InsteadOfAnswer as error:
            raise self._unusable(error.body) from None
        except (AttributeError, LookupError, TypeError):
            raise self._unusable(reply.body) from None

    async def _reply(self, sent: Awaitable[httpx2.Response], sdk: Any) -> Reply:
        started = time.perf_counter()
        # Redacted before anything is read, as a key that is cut in two is none that is found.
        # `from None`: what an SDK says is not redacted.
        redactor = self.endpoint.redactor
        try:
            async with asyncio.timeout(self.timeout):
                response = await sent
            body = redactor.redact_json(_read(response))
        except sdk.APIStatusError as error:
            body, headers = redactor.redact_json(error.body), self._headers(error.response)
            if error.status_code == HTTPStatus.BAD_REQUEST and _is_filtered(body):
                raise _Filtered(_detail(body)) from None
            raise self._refused(error.status_code, body, headers) from None
        except sdk.APIConnectionError as error:
            raise self._unreachable(error) from None
        except TimeoutError:
            raise self._silent() from None
        except ReplyTooLong:  # as one SDK raises it; the other wraps it
            raise self._too_long() from None
        except (JSONDecodeError, UnicodeDecodeError) as error:
            why = f"{self.endpoint.host} sent broken JSON ({error})"
            raise self._error(why, status=200, retryable=True) from None
        except Exception as error:  # noqa: BLE001  an SDK's: the run is missing data
            said = _detail(self.endpoint.redact(str(error)))
            raise self._error(f"{type(error).__name__}: {said}") from None
        if not isinstance(body, Mapping):
            raise self._unusable(body)
        latency_s = time.perf_counter() - started
        return Reply(body=body, headers=self._headers(response), latency_s=latency_s)

    def _headers(self, response: httpx2.Response) -> Mapping[str, str]:
        redact = self.endpoint.redact
        return {name.lower(): redact(value) for name, value in response.headers.items()}

    def _refused(self, status: int, body: object, headers: Mapping[str, str]) -> ProviderError:
        """Make the error of an HTTP status.

        Which statuses pass is what both SDKs retry: 408, 409, 429 and 5xx, unless the
        ``x-should-retry`` header says otherwise.
        """
        broke = status == HTTPStatus.TOO_MANY_REQUESTS and _code(body) == "insufficient_quota"
        passing = status in _PASSING or status >= HTTPStatus.INTERNAL_SERVER_ERROR
        retryable = {"true": True, "false": False}.get(
            headers.get("x-should-retry", ""), passing and not broke
        )
        said = " ".join(part for part in (f"HTTP {status}", _detail(body)) if part)
        way_out = self._cure(status, headers, said)
        return self._error(
            ": ".join(part for part in (said, way_out) if part),
            status=status,
            retryable=retryable,
            retry_after=_retry_after(headers),
            loading=status == HTTPStatus.SERVICE_UNAVAILABLE and bool(LOADING.search(said)),
            fatal=(status in _FATAL or broke) and not retryable,
        )

    def _unusable(self, reply: object) -> ProviderError:
        """Make the error of a reply with status 200 that is no answer.

        Some hosts send their errors so; they count as the status they name, but may come of an
        answer that had begun and is billed.
        """
        status = _status(_code(reply))
        if status is not None:
            error = self._refused(status, reply, {})
            error.billable = True
            return error
        host, said = self.endpoint.host, _detail(reply)
        if said and isinstance(reply, Mapping):
            return self._error(f"{host} sent an error with HTTP 200: {said}", status=200)
        what = said or _detail(str(reply))
        return self._error(
            f"{host} sent no API reply but {what!r}: is the base URL right?", status=200
        )

    def _cure(self, status: int, headers: Mapping[str, str], said: str) -> str:
        match status:
            case 400 | 413 | 422:
                return cure(said)
            case 301 | 302 | 303 | 307 | 308:
                return f"{self.endpoint.host} redirects to {_place(headers.get('location', ''))}"
            case 401 | 403:
                return f"check {self.endpoint.key_variable}"
            case 402:
                return f"check the billing of the account of {self.endpoint.key_variable}"
            case 404:
                return f"no model {self.model.name!r} at {self.endpoint.host}{self._url_hint()}"
        return ""

    def _url_hint(self) -> str:
        bare = self.endpoint.provider == "openai" and not self.endpoint.url.endswith("/v1")
        return ", or the base URL lacks its /v1" if bare else ""

    def _unreachable(self, error: Exception) -> ProviderError:
        cause = error.__cause__ or error
        if isinstance(cause, ReplyTooLong):
            return self._too_long()
        why = str(cause) or type(cause).__name__
        return self._error(
            f"no connection to {self.endpoint.host} ({why}): is it running and reachable?",
            retryable=True,
            billable=not isinstance(cause, NOT_SENT),
        )

    def _too_long(self) -> ProviderError:
        return self._error(
            f"{self.endpoint.host} sent more than {MOST_BYTES >> 20} MiB", status=200
        )

    def _silent(self) -> ProviderError:
        return self._error(
            f"no reply from {self.endpoint.host} within {self.timeout:g} s (--upskill-timeout)",
            retryable=True,
        )

    def _error(self, message: str, **details: Any) -> ProviderError:
        line = self.endpoint.redact(_one_line(message))
        return ProviderError(f"{self.model.label}: {line}", **details)


def _place(location: str) -> str:
    """Name where a redirect leads, without what a server may have put a key into."""
    return re.split(r"[?#]", without_userinfo(location), maxsplit=1)[0] or "nowhere"


def _read(response: httpx2.Response) -> object:
    """Parse a reply's JSON; the text of what does not call itself JSON is taken as it is."""
    try:
        return response.json()
    except ValueError:
        if "json" in response.headers.get("content-type", "json"):
            raise
        return response.text


def _detail(body: object) -> str:
    """Find the server's own words in an error body, whatever its shape."""
    while isinstance(body, Mapping):
        body = body.get("error") or body.get("message") or body.get("detail")
    text = _one_line(str(body or ""))
    return text if len(text) <= _DETAIL_CHARS else text[:_DETAIL_CHARS] + "..."


def _code(body: object) -> object:
    """Find OpenAI's error code, in the body or, as its SDK gives it, already unwrapped."""
    inner = body.get("error", body) if isinstance(body, Mapping) else None
    return inner.get("code") if isinstance(inner, Mapping) else None


def _is_filtered(body: object) -> bool:
    """Return whether a content filter refused a request, by its code or its words."""
    return bool(FILTERED.search(f"{_code(body)} {_detail(body)}"))


def _status(code: object) -> int | None:
    """Read an error code as an HTTP status, None where it is none."""
    if isinstance(code, bool) or not re.fullmatch("[45][0-9]{2}", str(code)):
        return None
    return int(str(code))


def _one_line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Read how many seconds to wait: ``retry-after-ms``, else RFC 9110's ``Retry-After``."""
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
