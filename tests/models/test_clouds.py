"""Models of Azure, Amazon Bedrock and Vertex AI, each with its cloud's own sign-in."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.models import ModelError, ProviderError, parse_model
from pytest_upskill.models.clients import missing_sdk
from pytest_upskill.models.keys import endpoints, missing_key
from pytest_upskill.project.redaction import HIDDEN
from tests.loopback import Loopback, Received, Reply
from tests.sdk_requests import ask, request_to

MESSAGE = {
    "model": "served",
    "content": [{"type": "text", "text": "37"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 3, "output_tokens": 1},
}
CHAT = {
    "model": "served",
    "choices": [{"message": {"content": "37"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 1},
}


@pytest.fixture(autouse=True)
def _no_clouds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    names = (
        *("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN", "OPENAI_API_VERSION"),
        *("AWS_BEARER_TOKEN_BEDROCK", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"),
    )
    for name in names:
        monkeypatch.delenv(name, raising=False)
    for name in [name for name in os.environ if name.startswith(("AZURE_", "IDENTITY_", "MSI_"))]:
        monkeypatch.delenv(name)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("UPSKILL_API_KEY", "for-another-host")


def answer(loopback: Loopback, spec: str, body: Mapping[str, Any]) -> Received:
    """Send a request, and return what the cloud received."""
    loopback.answer = lambda _: Reply(body=body)
    assert ask(request_to(parse_model(spec))).text == "37"
    assert "for-another-host" not in repr(loopback.requests)
    return loopback.requests[-1]


@pytest.mark.parametrize(
    ("variable", "header", "value"),
    [
        ("AZURE_OPENAI_API_KEY", "api-key", "the-azure-key"),
        ("AZURE_OPENAI_AD_TOKEN", "authorization", "Bearer the-azure-key"),
    ],
)
def test_azure_gets_its_key_or_token_at_the_deployment(
    loopback: Loopback, monkeypatch: pytest.MonkeyPatch, variable: str, header: str, value: str
) -> None:
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", loopback.url)
    monkeypatch.setenv(variable, "the-azure-key")

    received = answer(loopback, "azure:my-gpt", CHAT)

    assert received.path == "/openai/deployments/my-gpt/chat/completions?api-version=2024-10-21"
    assert received.headers[header] == value
    assert received.body["messages"][-1] == {"role": "user", "content": "Why?"}


@pytest.fixture
def token_server() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Serve tokens as Azure does to the programs that it runs; yield URL and what was asked."""
    asked: list[tuple[str, str]] = []

    class Tokens(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, self.headers["x-identity-header"]))
            token = {"access_token": "token-of-entra", "token_type": "Bearer", "resource": "r"}
            body = json.dumps({**token, "expires_on": str(int(time.time()) + 3600)}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Tokens) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/token", asked
        server.shutdown()


@pytest.mark.needs("module azure.identity")
def test_azure_without_a_key_gets_a_token_of_entra(
    loopback: Loopback,
    monkeypatch: pytest.MonkeyPatch,
    token_server: tuple[str, list[tuple[str, str]]],
) -> None:
    url, asked = token_server
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", loopback.url)
    monkeypatch.setenv("IDENTITY_ENDPOINT", url)
    monkeypatch.setenv("IDENTITY_HEADER", "proof")
    assert missing_key(parse_model("azure:my-gpt"), {"AZURE_OPENAI_ENDPOINT": "x"}) == ""

    received = answer(loopback, "azure:my-gpt", CHAT)

    assert received.headers["authorization"] == "Bearer token-of-entra"
    ((path, proof),) = asked
    assert "resource=https://cognitiveservices.azure.com" in path
    assert proof == "proof"


@pytest.mark.parametrize("path", ["", "/openai", "/openai/v1"])
def test_azure_may_be_named_by_its_url_and_no_other_host_may(path: str) -> None:
    model = parse_model(f"azure:my-gpt@https://r.openai.azure.com{path}")
    (endpoint,) = endpoints([model], {"AZURE_OPENAI_API_KEY": "k"}).values()

    assert (endpoint.client, endpoint.host) == ("AsyncAzureOpenAI", "r.openai.azure.com")
    assert missing_key(model, {"AZURE_OPENAI_API_KEY": "k"}) == ""
    with pytest.raises(ModelError, match="set AZURE_OPENAI_ENDPOINT for a gateway to it"):
        parse_model(f"azure:my-gpt@https://other.example{path}")


def test_a_classic_url_of_azure_is_refused_with_how_to_write_it() -> None:
    url = "https://r.openai.azure.com/openai/deployments/d/chat/completions?api-version=1"

    with pytest.raises(ModelError, match=r"write azure:DEPLOYMENT@https://RESOURCE\.openai\.azure"):
        parse_model(f"d@{url}")


@pytest.mark.needs("module boto3")
def test_bedrock_gets_requests_signed_with_the_credentials_of_aws(
    loopback: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    monkeypatch.setenv("ANTHROPIC_BEDROCK_BASE_URL", loopback.url)
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIA0")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret-of-aws")

    received = answer(loopback, "bedrock:us.anthropic.claude-x-v1:0", MESSAGE)

    assert received.path == "/model/us.anthropic.claude-x-v1:0/invoke"
    assert {"model", "stream"}.isdisjoint(received.body)
    assert received.body["anthropic_version"]
    _, _, fields = received.headers["authorization"].partition(" ")
    credential, signed, signature = fields.split(", ")
    assert credential.endswith("/eu-central-1/bedrock/aws4_request")
    names = signed.partition("=")[2].split(";")
    again = AWSRequest(
        "POST",
        f"{loopback.url}{received.path}",
        headers={name: received.headers[name] for name in names},
        data=received.raw,
    )
    again.context["timestamp"] = received.headers["x-amz-date"]
    signer = SigV4Auth(Credentials("AKIA0", "secret-of-aws"), "bedrock", "eu-central-1")
    text = signer.string_to_sign(again, signer.canonical_request(again))
    assert signature == f"Signature={signer.signature(text, again)}"


def test_bedrock_takes_a_bearer_token_and_names_what_to_check(
    loopback: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_BEDROCK_BASE_URL", loopback.url)
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "token-of-bedrock")
    model = "m=bedrock:anthropic.claude-x"

    assert answer(loopback, model, MESSAGE).headers["authorization"] == "Bearer token-of-bedrock"
    loopback.answer = lambda _: Reply(status=403, body={"message": "no token-of-bedrock here"})
    with pytest.raises(ProviderError) as caught:
        ask(request_to(parse_model(model)))

    assert str(caught.value).startswith(
        f"m: HTTP 403 no {HIDDEN} here: check AWS_BEARER_TOKEN_BEDROCK, AWS_ACCESS_KEY_ID"
    )


@pytest.mark.needs("module boto3")
def test_bedrock_without_credentials_says_how_to_sign_in(
    loopback: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_BEDROCK_BASE_URL", loopback.url)
    monkeypatch.setenv("AWS_REGION", "us-west-2")

    with pytest.raises(
        ProviderError, match=r"cannot sign in \(.*credentials.*\): check AWS_BEARER"
    ) as at:
        ask(request_to(parse_model("m=bedrock:anthropic.claude-x")))

    assert (at.value.fatal, at.value.billable) == (True, False)


@pytest.mark.needs("module google.auth")
def test_vertex_gets_the_token_of_the_service_account(
    loopback: Loopback, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    private = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    account = {
        "type": "service_account",
        "project_id": "my-project",
        "client_email": "me@my-project.example",
        "private_key": private.decode(),
        "token_uri": f"{loopback.url}/token",
    }
    (tmp_path / "account.json").write_text(json.dumps(account), "utf-8")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "account.json"))
    monkeypatch.setenv("ANTHROPIC_VERTEX_BASE_URL", f"{loopback.url}/v1")
    monkeypatch.setenv("CLOUD_ML_REGION", "europe-west1")
    monkeypatch.setenv("ANTHROPIC_VERTEX_PROJECT_ID", "my-project")
    loopback.replies.append(Reply(body={"access_token": "token-of-google", "expires_in": 3600}))

    received = answer(loopback, "vertex:claude-haiku-4-5@20251001", MESSAGE)

    assert received.path == (
        "/v1/projects/my-project/locations/europe-west1/publishers/anthropic/models/"
        "claude-haiku-4-5@20251001:rawPredict"
    )
    assert received.headers["authorization"] == "Bearer token-of-google"
    assert "model" not in received.body


def test_a_cloud_needs_its_address_and_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    assert missing_key(parse_model("m=azure:d"), {"AZURE_OPENAI_API_KEY": "k"}) == (
        "m: Azure OpenAI needs its address: set AZURE_OPENAI_ENDPOINT"
    )
    assert missing_key(parse_model("m=vertex:c@20251001"), {}) == (
        "m: Google Vertex AI needs its address: set CLOUD_ML_REGION and ANTHROPIC_VERTEX_PROJECT_ID"
    )
    monkeypatch.setattr(
        "pytest_upskill.models.clients.has_module", lambda name: name != "google.auth"
    )
    assert missing_sdk(parse_model("m=vertex:c@20251001")) == (
        "m: needs google.auth to sign in to Google Vertex AI: pip install 'pytest-upskill[vertex]'"
    )


def test_the_region_is_not_part_of_a_recordings_identity() -> None:
    model = parse_model("bedrock:anthropic.claude-x")
    urls = {endpoints([model], {"AWS_REGION": region})[model].url for region in ("a", "b")}

    assert len(urls) == 1
