"""What the redactor finds, and that malformed URLs, values and logs show nothing either."""

from __future__ import annotations

import html
import json
import logging
import time
from collections.abc import Callable, Mapping
from urllib.parse import quote

import pytest

from pytest_upskill.models import ModelError, parse_model
from pytest_upskill.models.keys import endpoints
from pytest_upskill.models.model import Names
from pytest_upskill.project.redaction import Redactor
from pytest_upskill.session.outgoing import redact_logs

USER = "planted-user-name"
KEY = "sk-planted-0123456789"
ECHOES: Mapping[str, Callable[[str], str]] = {
    "as it is": str,
    "percent-encoded": lambda key: quote(key, safe=""),
    "twice, in lower case": lambda key: quote(quote(key, safe=""), safe="").lower(),
    "escaped for JSON": lambda key: json.dumps(key)[1:-1],
    "escaped for HTML": html.escape,
    "with escaped slashes": lambda key: key.replace("/", "\\/"),
    "broken over lines": "\r\n\t".join,
}
SLIPS = {
    "bad port": "http://{user}:{key}@host.invalid:port/v1",
    "port too large": "http://{user}:{key}@host.invalid:99999",
    "hash": "http://{user}:{key}#x@host.invalid/v1",
    "question mark": "http://{user}:x?{key}@host.invalid/v1",
    "space": "http://{user}:{key} x@host.invalid/v1",
    "slash": "http://{user}:{key}/x@host.invalid/v1",
    "at": "http://{user}:x@{key}@host.invalid:port/v1",
    "bracket": "http://{user}:{key}@[host.invalid/v1",
    "query": "http://host.invalid/v1?key={key}",
    "fragment": "http://host.invalid/v1#{key}",
    "no host": "http://{user}:{key}@",
    "comma": "http://{user}:x,{key}@host.invalid/v1",
    "comma after digits": "http://{user}:12,{key}@host.invalid/v1",
}


@pytest.mark.parametrize("slip", SLIPS)
def test_a_url_that_cannot_be_read_is_refused_without_its_credentials(slip: str) -> None:
    url = SLIPS[slip].format(user=USER, key=KEY)

    with pytest.raises(ModelError) as caught:
        Names().models([f"m@{url}"])

    assert USER not in str(caught.value)
    assert "sk-planted" not in str(caught.value)


def test_values_do_not_show_the_credentials_of_a_url() -> None:
    model = parse_model(f"m@http://{USER}:{KEY}@host.invalid/v1")

    shown = f"{model!r} {endpoints([model], {})!r} {model.base_url} {model.resolved}"

    assert USER not in shown
    assert KEY not in shown


@pytest.mark.parametrize("echo", ECHOES)
@pytest.mark.parametrize("character", "\"'/+&<>%\\ ü\N{EURO SIGN}")
def test_a_secret_is_found_in_every_form_in_which_servers_echo_it(
    character: str, echo: str
) -> None:
    secret = f"begin{character}end"

    assert Redactor([secret]).redact(f"<{ECHOES[echo](secret)}>") == "<***>"


def test_no_text_makes_the_redactor_search_for_long() -> None:
    redactor = Redactor([f"{'a b' * 20}c"])
    text = ("a" + "\n" * 50_000 + "a b" * 50_000 + " " * 50_000) * 2

    started = time.process_time()
    assert redactor.redact(text) == text
    assert time.process_time() - started < 2


def test_the_longest_secret_is_blanked_whole() -> None:
    redactor = Redactor(["sk-12345", "sk-12345-and-more"])

    assert redactor.redact("sk-12345-and-more, sk-12345.") == "***, ***."


def test_logs_hold_no_key_wherever_they_come_from(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")

    end = redact_logs(Redactor([KEY]))
    logging.getLogger("httpcore2.http11").debug("headers %r", [(b"x-request-id", KEY)])
    logging.getLogger("openai").debug("said %s", "\x1b[2J##[error]no")
    logging.getLogger("some.plugin").warning("sent %s", KEY)
    logging.getLogger("some.plugin").warning("%d of 3", 2)
    logging.getLogger("anthropic").error("failed", exc_info=ValueError(KEY))
    end()
    logging.getLogger("some.plugin").warning("afterwards %s", "as ever")

    assert KEY not in caplog.text
    assert "\x1b[2J" not in caplog.text
    assert "##[" not in caplog.text
    assert [record.args for record in caplog.records][-3:] == [(2,), (), ("as ever",)]
    assert "ValueError: ***" in caplog.text


@pytest.mark.parametrize(("secret", "shown"), [("8-chars!", "***"), ("7-chars", "7-chars")])
def test_a_secret_has_eight_characters_or_more(secret: str, shown: str) -> None:
    assert Redactor([secret]).redact(f"key: {secret}") == f"key: {shown}"
