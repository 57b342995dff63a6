"""Which key goes to which host, and to no other."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest

from pytest_upskill.models import Model, ProviderError, parse_model
from pytest_upskill.models.keys import KeyProblem, endpoints
from pytest_upskill.models.model import Names
from tests.conftest import Run, WriteSkill
from tests.loopback import Loopback, Reply
from tests.sdk_requests import ask, every_sdk, model_at, request_to

PLANTED = {
    "ANTHROPIC_API_KEY": "planted-anthropic-key",
    "ANTHROPIC_AUTH_TOKEN": "planted-anthropic-token",
    "ANTHROPIC_BASE_URL": "http://planted-anthropic-host.invalid",
    "ANTHROPIC_CUSTOM_HEADERS": "X-Planted: planted-header\nauthorization: planted-authorization",
    "ANTHROPIC_PROFILE": "planted-profile",
    "OPENAI_API_KEY": "planted-openai-key",
    "OPENAI_ADMIN_KEY": "planted-admin-key",
    "OPENAI_BASE_URL": "http://planted-openai-host.invalid/v1",
    "OPENAI_CUSTOM_HEADERS": "X-Planted: planted-header\nAuthorization: planted-authorization",
    "OPENAI_ORG_ID": "planted-organization",
    "OPENAI_PROJECT_ID": "planted-project",
}


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in PLANTED.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def no_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [*PLANTED, "UPSKILL_API_KEY"]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ANTHROPIC_CONFIG_DIR", str(tmp_path))


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> list[httpx2.Request]:
    """Every request that would have left this machine; none does."""
    sent: list[httpx2.Request] = []

    async def record(_: httpx2.AsyncHTTPTransport, request: httpx2.Request) -> httpx2.Response:
        sent.append(request)
        return httpx2.Response(404, json={"error": {"message": "recorded"}})

    monkeypatch.setattr(httpx2.AsyncHTTPTransport, "handle_async_request", record)
    return sent


@every_sdk
@pytest.mark.usefixtures("planted")
def test_nothing_that_is_for_another_host_reaches_a_custom_one(
    loopback: Loopback, provider: str
) -> None:
    ask(request_to(model_at(loopback, provider)))

    (request,) = loopback.requests
    assert "planted" not in repr(request)
    assert request.headers["authorization"] == "Bearer none"


@every_sdk
@pytest.mark.usefixtures("planted")
def test_a_custom_host_gets_the_key_that_is_set_for_it(
    loopback: Loopback, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UPSKILL_API_KEY", "for-this-host\n")

    ask(request_to(model_at(loopback, provider)))

    assert loopback.requests[0].headers["authorization"] == "Bearer for-this-host"


@every_sdk
@pytest.mark.usefixtures("planted")
def test_credentials_in_a_url_go_to_its_host_alone(
    loopback: Loopback, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UPSKILL_API_KEY", "for-another-host")
    url = loopback.openai_url.replace("http://", "http://me:p%40ss@")

    ask(request_to(parse_model(f"m={provider}:some-model@{url}")))

    assert loopback.requests[0].headers["authorization"] == "Basic bWU6cEBzcw=="


@every_sdk
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_reported_and_not_followed(
    loopback: Loopback, provider: str, status: int
) -> None:
    elsewhere = "http://elsewhere.invalid/v1/"
    loopback.replies.append(Reply(status=status, headers={"location": elsewhere}, body=""))

    with pytest.raises(ProviderError, match=f"redirects to {elsewhere}") as caught:
        ask(request_to(model_at(loopback, provider)))

    assert (caught.value.fatal, len(loopback.requests)) == (True, 1)


@every_sdk
def test_a_placeholder_for_a_key_may_be_a_word_of_an_answer(
    loopback: Loopback, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UPSKILL_API_KEY", "ollama")
    loopback.answer = lambda _: "Start it with `ollama serve`."

    assert ask(request_to(model_at(loopback, provider))).text == "Start it with `ollama serve`."


@pytest.mark.usefixtures("no_keys")
@pytest.mark.parametrize(
    ("spec", "variable", "host"),
    [
        ("anthropic:claude-x", "ANTHROPIC_API_KEY", "api.anthropic.com"),
        ("anthropic:claude-x", "ANTHROPIC_AUTH_TOKEN", "api.anthropic.com"),
        ("openai:gpt-x", "OPENAI_API_KEY", "api.openai.com"),
        ("gpt-x@https://api.openai.com/v1", "OPENAI_API_KEY", "api.openai.com"),
        ("claude-x@https://api.anthropic.com/v1", "ANTHROPIC_API_KEY", "api.anthropic.com"),
    ],
)
def test_a_vendors_host_gets_the_vendors_key(
    wire: list[httpx2.Request], monkeypatch: pytest.MonkeyPatch, spec: str, variable: str, host: str
) -> None:
    monkeypatch.setenv(variable, "the-key")
    monkeypatch.setenv("UPSKILL_API_KEY", "for-another-host")

    with pytest.raises(ProviderError):
        ask(request_to(parse_model(spec)))

    (request,) = wire
    assert request.url.host == host
    assert request.headers["authorization"] == "Bearer the-key"
    assert "for-another-host" not in repr(request.headers.raw)


@every_sdk
@pytest.mark.usefixtures("no_keys")
def test_the_sdks_own_base_url_and_key_go_together(
    loopback: Loopback, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"{provider.upper()}_BASE_URL", model_at(loopback, provider).base_url or "")
    monkeypatch.setenv(f"{provider.upper()}_API_KEY", "of-the-gateway")

    ask(request_to(parse_model(f"m={provider}:some-model")))

    assert loopback.requests[0].headers["authorization"] == "Bearer of-the-gateway"


@pytest.mark.parametrize(
    "url",
    [
        "http://api.openai.com/v1",
        "https://api.openai.com.evil.invalid/v1",
        "https://x@api.openai.com:444/v1",
    ],
)
def test_a_host_that_only_looks_like_the_vendors_is_a_custom_one(url: str) -> None:
    model = parse_model(f"gpt-x@{url}")

    endpoint = endpoints([model], {"OPENAI_API_KEY": "the-key"})[model]

    assert endpoint.key != "the-key"


def two_hosts() -> tuple[Model, Model]:
    return parse_model("glm-4.7=x@http://a.invalid/v1"), parse_model("b=y@http://b.invalid/v1")


def test_one_key_for_two_custom_hosts_is_refused() -> None:
    with pytest.raises(KeyProblem) as caught:
        endpoints(two_hosts(), {"UPSKILL_API_KEY": "whose"})

    assert str(caught.value) == (
        "UPSKILL_API_KEY is ambiguous, a.invalid and b.invalid would all get it: "
        "set UPSKILL_API_KEY_LABEL, one for each label, instead"
    )


def test_a_key_per_label_tells_custom_hosts_apart() -> None:
    environ = {"UPSKILL_API_KEY_GLM_4_7": "for-a"}

    a, b = endpoints(two_hosts(), environ).values()

    assert (a.key, b.key) == ("for-a", "none")


@pytest.mark.parametrize("prefix", ["openai", "anthropic", "groq"])
def test_a_key_per_label_tells_two_accounts_of_a_vendor_apart(prefix: str) -> None:
    first, second = models = Names().models([f"a={prefix}:x", f"b={prefix}:x"])
    vendor = f"{prefix.upper()}_API_KEY"

    found = endpoints(models, {vendor: "vendor-key", "UPSKILL_API_KEY_A": "label-key"})

    assert (found[first].key, found[first].key_variable) == ("label-key", "UPSKILL_API_KEY_A")
    assert (found[second].key, found[second].key_variable) == ("vendor-key", vendor)
    assert found[first].url == found[second].url


@every_sdk
@pytest.mark.usefixtures("planted")
def test_the_sdks_variables_are_not_for_the_account_of_a_label(
    wire: list[httpx2.Request], provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UPSKILL_API_KEY_M", "label-key")

    with pytest.raises(ProviderError):
        ask(request_to(parse_model(f"m={provider}:x")))

    (request,) = wire
    assert request.url.host == f"planted-{provider}-host.invalid"
    assert request.headers["authorization"] == "Bearer label-key"
    assert "planted" not in repr([*request.headers.items()]).replace(request.url.host, "")


def test_two_models_of_one_host_share_its_endpoint() -> None:
    models = [parse_model(f"{name}@http://a.invalid/v1") for name in ("x", "y")]

    x, y = endpoints(models, {"UPSKILL_API_KEY": "for-a"}).values()

    assert x == y
    assert hash(x) == hash(y)


@pytest.mark.parametrize("key", ["two words", "a\nb", "schlüssel", "“quoted”"])
def test_a_key_that_cannot_be_sent_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(KeyProblem) as caught:
        endpoints([parse_model("gpt-x")], {"OPENAI_API_KEY": key})

    assert str(caught.value).startswith("OPENAI_API_KEY is not a valid key: ")
    assert key not in str(caught.value)


def test_an_endpoint_does_not_show_its_key() -> None:
    model = parse_model("x@http://me:secret@a.invalid/v1")

    (endpoint,) = endpoints([model], {}).values()

    assert "secret" not in repr(endpoint)
    assert (endpoint.key or "") not in repr(endpoint)
    assert endpoint.url == "http://a.invalid/v1"


@pytest.fixture
def gateway(write_skill: WriteSkill, pytester: pytest.Pytester) -> None:
    """A server that wants a header of its own."""
    write_skill()
    pytester.makeini("[pytest]\nupskill_headers =\n    m: X-Team = TEAM_TOKEN\n")


@pytest.mark.usefixtures("gateway")
def test_a_header_of_ones_own_goes_to_the_model_with_its_label(
    run_once: Run, loopback: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEAM_TOKEN", "token-of-the-team")
    loopback.answer = lambda received: Reply(text=f"37 {received.headers.get('x-team')}")
    url = loopback.openai_url

    result = run_once("--upskill-models", f"m=a@{url},n=b@{url}", "skills", "--upskill-json", "r")

    sent = {
        received.body["model"]: received.headers.get("x-team") for received in loopback.requests
    }
    assert sent == {"a": "token-of-the-team", "b": None}
    assert "token-of-the-team" not in result.stdout.str() + Path("r").read_text("utf-8")


@pytest.mark.usefixtures("gateway")
def test_a_header_without_its_variable_is_an_error_before_any_request(
    run_once: Run, loopback: Loopback
) -> None:
    result = run_once("--upskill-models", f"m=a@{loopback.openai_url}", "skills")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert loopback.requests == []
    result.stderr.fnmatch_lines(["*m: upskill_headers: no value for X-Team: set TEAM_TOKEN"])


@pytest.mark.parametrize("line", ["m: X-Team = secret-value!", "X-Team = T", "m: Host = T"])
def test_a_line_of_headers_that_cannot_be_read_is_refused_without_its_value(
    run_once: Run, pytester: pytest.Pytester, line: str
) -> None:
    pytester.makeini(f"[pytest]\nupskill_headers = {line}\n")

    result = run_once("--upskill-models", "m=a@http://127.0.0.1:1/v1")

    result.stderr.fnmatch_lines(["*upskill_headers: bad line '*': *"])
    assert "secret-value" not in result.stderr.str()
