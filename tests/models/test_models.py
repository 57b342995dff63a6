"""How a model is written: host, name, label and base URL."""

from __future__ import annotations

import pytest

from pytest_upskill.models import Model, ModelError, parse_model
from pytest_upskill.models.model import Names, server

LOCAL = "http://localhost:8080/v1"


@pytest.mark.parametrize(
    ("text", "provider", "name", "base_url"),
    [
        ("haiku", "anthropic", "claude-haiku-5-5", None),
        ("Sonnet", "anthropic", "claude-sonnet-5-5", None),
        ("anthropic:opus", "anthropic", "claude-opus-5-5", None),
        ("claude-haiku-4-5-20251001", "anthropic", "claude-haiku-4-5-20251001", None),
        ("claude-opus-4-8", "anthropic", "claude-opus-4-8", None),
        ("anthropic:claude-sonnet-5-5", "anthropic", "claude-sonnet-5-5", None),
        ("anthropic.claude-sonnet-4-20250514", "anthropic", "claude-sonnet-4-20250514", None),
        ("openai:gpt-6-luna", "openai", "gpt-6-luna", None),
        ("openai.gpt-4.1", "openai", "gpt-4.1", None),
        ("gpt-6.1-terra", "openai", "gpt-6.1-terra", None),
        ("o4-mini", "openai", "o4-mini", None),
        (f"local-model@{LOCAL}", "openai", "local-model", LOCAL),
        (
            f"unsloth/GLM-4.7-Flash-GGUF:Q4_0@{LOCAL}",
            "openai",
            "unsloth/GLM-4.7-Flash-GGUF:Q4_0",
            LOCAL,
        ),
        (f"openai/gpt-oss-20b@{LOCAL}", "openai", "openai/gpt-oss-20b", LOCAL),
        (f"/models/tiny-llama@main@{LOCAL}", "openai", "/models/tiny-llama@main", LOCAL),
        (f"llama3.2:latest@{LOCAL}/", "openai", "llama3.2:latest", LOCAL),
        ("m@http://[::1]:8080/v1", "openai", "m", "http://[::1]:8080/v1"),
        ("m@https://u:p@h.example/v1", "openai", "m", "https://h.example/v1"),
        (
            "anthropic:claude-x@http://127.0.0.1:4010",
            "anthropic",
            "claude-x",
            "http://127.0.0.1:4010",
        ),
        ("openai:openai:odd", "openai", "openai:odd", None),
        ("openai:ft:gpt-4o:acme::abc", "openai", "ft:gpt-4o:acme::abc", None),
        ("openai:claude-opus-4@20250514", "openai", "claude-opus-4@20250514", None),
        ("offline", "offline", "offline", None),
        ("acme:some-model", "acme", "some-model", None),
        ("vertex:claude-x@20250514", "vertex", "claude-x@20250514", None),
        ("m=a=b@http://h/v1", "openai", "a=b", "http://h/v1"),
        (f"generic:haiku@{LOCAL}", "openai", "haiku", LOCAL),
        (f"haiku@{LOCAL}", "openai", "haiku", LOCAL),
        ("gemini-3.5-flash", "gemini", "gemini-3.5-flash", None),
        ("gemini-cli:gemini-3.5-flash", "gemini", "gemini-3.5-flash", None),
        ("gemini-cli:gemini:gemini-3.5-flash", "gemini", "gemini-3.5-flash", None),
        (f"gemini-cli:gemini:x@{LOCAL}", "gemini", "x", LOCAL),
        (f"gemini-cli:x@{LOCAL}", "gemini", "x", LOCAL),
        (f"claude-code:haiku@{LOCAL}", "anthropic", "claude-haiku-5-5", LOCAL),
        (f"pi:openai:glm@{LOCAL}", "openai", "glm", LOCAL),
        (f"loop:mistral:7b@{LOCAL}", "openai", "mistral:7b", LOCAL),
    ],
)
def test_a_model_is_read(text: str, provider: str, name: str, base_url: str | None) -> None:
    model = parse_model(text)

    assert (model.provider, model.name, model.base_url) == (provider, name, base_url)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "bad model '': write [label=][agent:]"),
        ("a b", "bad model 'a b': write [label=][agent:]"),
        ("mystery", "cannot tell the host of model 'mystery': write host:model or "),
        ("mock@127.0.0.1:8080/v1", " (http:// or https:// is missing after the @): write "),
        ("hiku", " (did you mean 'haiku'?)"),
        ("ofline", " (did you mean 'offline'?)"),
        (
            "openai/gpt-6-luna",
            "cannot tell the host of model 'openai/gpt-6-luna'",
        ),
        ("openai:", "bad model 'openai:': write [label=][agent:]"),
        ("zai/glm-4.7@127.0.0.1:8080/v1", "glm-4.7@http://127.0.0.1:8080/v1"),
        (
            "@http://h/v1",
            "bad model '@http://h/v1': write [label=][agent:]",
        ),
        ("m@http://", "bad model 'm@http://': the base URL has no host"),
        (
            "m@http://h:x/v1",
            "bad model 'm@http://h:x/v1': the base URL has an invalid host or port",
        ),
        ("m@http://h/?a=1", "bad model 'm@http://h/?***': the base URL has a query or a fragment"),
        ("unsloth/GLM:Q4", "cannot tell the host of model 'unsloth/GLM:Q4': write "),
        ("ft:gpt-4o:acme::abc", "cannot tell the host of model 'ft:gpt-4o:acme::abc': write "),
        ("gemini-cli:", "write gemini-cli:MODEL, such as gemini-cli:gemini-3.5-flash"),
        ("gemini-cli:haiku", "gemini-cli speaks the wire format of gemini only, and 'anthropic:"),
        ("pi:loop:haiku", "pi:loop: an agent uses a model, not another agent"),
    ],
)
def test_a_model_that_cannot_be_read_is_refused_in_one_line(text: str, problem: str) -> None:
    with pytest.raises(ModelError) as caught:
        parse_model(text)

    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("haiku", "haiku"),
        ("Sonnet", "sonnet"),
        ("small=haiku", "small"),
        ("openai:gpt-6-luna", "gpt-6-luna"),
        (f"unsloth/GLM-4.7-Flash-GGUF:Q4_0@{LOCAL}", "GLM-4.7-Flash-GGUF-Q4_0"),
        (f"/models/tiny-llama@main@{LOCAL}", "tiny-llama-main"),
        ("openai:ft:gpt-4o:acme::abc", "ft-gpt-4o-acme-abc"),
    ],
)
def test_a_label_can_stand_in_a_node_id(text: str, label: str) -> None:
    assert parse_model(text).label == label


def test_the_default_server_takes_names_of_no_known_provider() -> None:
    named = [
        Names(default_base_url=LOCAL).model(text)
        for text in ("unsloth/GLM-4.7-Flash-GGUF:Q4_0", "generic.llama3.2:latest", "generic:m")
    ]

    assert [model.name for model in named] == [
        "unsloth/GLM-4.7-Flash-GGUF:Q4_0",
        "llama3.2:latest",
        "m",
    ]
    assert {(model.provider, model.base_url) for model in named} == {("openai", LOCAL)}


@pytest.mark.parametrize("text", ["haiku", "claude-opus-4-8", "openai:gpt-6-luna", "offline"])
def test_the_default_server_takes_no_name_that_has_a_provider(text: str) -> None:
    assert Names(default_base_url=LOCAL).model(text).base_url is None


def test_a_list_may_have_commas_and_blanks() -> None:
    models = Names().models([f"haiku, sonnet,openai:gpt-6-luna,,local-model@{LOCAL}", "offline"])

    labels = [model.label for model in models]
    assert labels == ["haiku", "sonnet", "gpt-6-luna", "local-model", "offline"]


def test_a_model_that_is_chosen_twice_runs_once() -> None:
    models = Names().models(["haiku", "haiku"])

    assert [model.label for model in models] == ["haiku"]


def test_two_models_cannot_share_a_label() -> None:
    with pytest.raises(ModelError, match="would both have the label 'm': rename one of them"):
        Names().models([f"m@{LOCAL}", "m@http://127.0.0.1:9/v1"])


def test_own_aliases_override() -> None:
    aliases = {"haiku": "offline", "glm": f"zai/glm-4.7@{LOCAL}"}

    models = Names(aliases).models(["haiku", "GLM"])

    assert models == (
        Model(label="haiku", provider="offline", name="offline"),
        Model(label="glm", provider="openai", name="zai/glm-4.7", base_url=LOCAL),
    )


def test_an_own_alias_is_not_taken_for_a_model_of_anthropics() -> None:
    aliases = {"haiku": f"generic:claude-haiku@{LOCAL}", "quick": "anthropic:claude-haiku-5-5"}

    (quick,) = Names(aliases).models(["anthropic:quick"])
    (haiku,) = Names(aliases).models(["anthropic:haiku"])

    assert (haiku.provider, haiku.name) == ("anthropic", "haiku")
    assert (quick.provider, quick.name) == ("anthropic", "claude-haiku-5-5")


def test_reports_name_the_host_and_hide_credentials() -> None:
    model = parse_model("m@https://user:secret@h.example:8443/v1")

    assert model.resolved == "openai:m@h.example:8443"


@pytest.mark.parametrize(
    "spec",
    [
        "m=x@htp://user:secret@h.example/v1",
        "x@user:secret@h.example/v1",
        "x@//user:secret@h.example/v1",
        "openai:x@htps://user:secret@h.example",
        "m=anthropic:x@user:secret@h.example",
        "http://user:secret@h.example/v1",
        "x@htp://h.example/v1?key=secret",
    ],
)
@pytest.mark.parametrize("default_base_url", [None, "http://127.0.0.1:8080/v1"])
def test_a_base_url_that_begins_wrong_is_refused_and_its_password_hidden(
    spec: str, default_base_url: str | None
) -> None:
    with pytest.raises(ModelError, match="bad model") as caught:
        Names(default_base_url=default_base_url).model(spec)

    assert "secret" not in str(caught.value)
    assert "h.example" in str(caught.value)


def test_a_server_is_known_by_its_url_without_the_slashes_at_its_end() -> None:
    assert server("HTTP://localhost:8080/v1//") == "HTTP://localhost:8080/v1"


@pytest.mark.parametrize("path", ["/chat/completions", "/completions/", "/messages", "/api/chat"])
def test_a_base_url_does_not_end_with_the_path_of_a_request(path: str) -> None:
    with pytest.raises(ModelError, match=rf"base URL ends with {path.rstrip('/')}, which is added"):
        parse_model(f"m@http://h/v1{path}")


@pytest.mark.parametrize(
    "text", ["", "localhost:8080/v1", "http://", "http://[", "ftp://localhost", "http://a b"]
)
def test_a_url_of_no_server_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  the callers say what is wrong
        server(text)
