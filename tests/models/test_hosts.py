"""Hosts that are known by name: their table, their keys, their prices."""

from __future__ import annotations

import pytest

from pytest_upskill.answers.prices import Prices
from pytest_upskill.models import Completion, ModelError, parse_model
from pytest_upskill.models.hosts import HOSTS, PLATFORMS, KnownHost
from pytest_upskill.models.keys import KeyProblem, endpoints, is_custom, missing_key
from tests.conftest import Run, WriteSkill
from tests.pages import CHECKOUT

every_host = pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.prefix)
VENDORS = [host for host in HOSTS if not host.local and host.prefix not in PLATFORMS]
every_vendor = pytest.mark.parametrize("host", VENDORS, ids=lambda host: host.prefix)


def differences(host: KnownHost) -> str:
    told = {
        "Anthropic's format": host.wire == "anthropic",
        f"refuses {', '.join(map('`{}`'.format, host.refuses))}": host.refuses,
        f"the seed is `{host.seed}`": host.seed != "seed",
        "the effort is `reasoning.effort`": host.nested_effort,
    }
    return "; ".join(text for text, holds in told.items() if holds)


@every_host
def test_the_docs_have_a_row_for_every_host_whose_example_is_a_model_there(host: KnownHost) -> None:
    page = (CHECKOUT / "docs" / "models.md").read_text("utf-8")
    table = page.partition("| write | host |")[2].partition("\n\n")[0].splitlines()[2:]
    keys = host.sign_in or " or ".join(f"`{key}`" for key in host.keys) or "no key"
    row = f" | {host.title} | `{host.url}` | {keys} | {differences(host)} |"

    number = HOSTS.index(host)
    line = "".join(table[number : number + 1])
    assert line.endswith(row), (
        f"docs/models.md needs as row {number + 1} of its table of hosts, in the order of HOSTS: "
        f"| `{host.prefix}:MODEL`{row}"
    )
    example = line.removesuffix(row).removeprefix("| `").removesuffix("`")
    model = parse_model(example)

    assert f"{model.provider}:{model.name}" == example
    assert (model.provider, model.base_url) == (host.prefix, host.url if host.local else None)


@every_vendor
def test_a_vendors_key_goes_to_its_host_and_to_no_other(host: KnownHost) -> None:
    environ = {key: f"of-{other.prefix}" for other in HOSTS for key in other.keys}
    environ["UPSKILL_API_KEY"] = "of-a-server"
    by_name = parse_model(f"a={host.prefix}:m")
    by_url = parse_model(f"b=anthropic:m@{host.url}" if host.wire != "openai" else f"m@{host.url}")

    found = endpoints([by_name, by_url, parse_model("c=m@http://other.invalid/v1")], environ)

    assert [endpoint.key for endpoint in found.values()] == [
        *[f"of-{host.prefix}"] * 2,
        "of-a-server",
    ]


@every_vendor
def test_a_vendors_missing_key_is_named(host: KnownHost) -> None:
    environ = {"ANTHROPIC_CONFIG_DIR": "/nowhere", "UPSKILL_API_KEY": "of-a-server"}

    problem = missing_key(parse_model(f"m={host.prefix}:x"), environ)

    assert problem == f"m: no key for {host.prefix}:x: set {host.keys[0]}"


def test_a_server_of_ones_own_gets_a_key_only_under_its_label() -> None:
    model = parse_model("ollama:gpt-oss:20b")

    for variable, key in [("UPSKILL_API_KEY", "none"), ("UPSKILL_API_KEY_GPT_OSS_20B", "k")]:
        assert endpoints([model], {variable: "k"})[model].key == key


def test_labels_that_spell_one_variable_do_not_share_its_key_over_hosts() -> None:
    models = [parse_model("a.b=groq:x"), parse_model("a-b=y@http://b.invalid/v1")]

    with pytest.raises(
        KeyProblem,
        match=r"UPSKILL_API_KEY_A_B is ambiguous, api\.groq\.com and b\..*would all get it",
    ):
        endpoints(models, {"UPSKILL_API_KEY_A_B": "whose"})


def test_servers_of_ones_own_are_custom_and_vendors_are_not() -> None:
    specs = ["ollama:x", "vllm:x@http://gpu/v1", "x@http://gpu/v1", "groq:x", "offline"]

    assert [is_custom(parse_model(spec)) for spec in specs] == [True, True, True, False, False]


@pytest.mark.parametrize(
    ("spec", "priced"),
    [
        ("groq:openai/gpt-oss-20b", True),
        ("hf:openai/gpt-oss-20b:groq", True),
        ("hf:openai/gpt-oss-20b", False),
        ("together:openai/gpt-oss-120b", True),
        ("openai/gpt-oss-120b@https://api.together.ai/v1", True),
        ("ollama:gpt-oss:20b", False),
    ],
)
def test_prices_are_those_of_the_host_where_it_is_listed(spec: str, priced: bool) -> None:
    completion = Completion(text="", input_tokens=1000, output_tokens=1000)

    cost = Prices({}).cost(parse_model(spec), completion)

    assert (cost is not None and cost > 0) is priced


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("user:secret@h.example", "bad model 'user:***@h.example': write"),
        ("user:secret@127.0.0.1:80/v1", "bad model 'user:***@127.0.0.1:80/v1': write"),
        ("gpt-oss:20b", "such as ollama:gpt-oss:20b"),
        ("openai:gpt-6-luna?temperature=0", "bad model 'openai:gpt-6-luna?"),
        ("m?api_key=secret@http://h/v1", "bad model 'm?***"),
    ],
)
def test_a_misspelt_name_gets_an_example(text: str, message: str) -> None:
    with pytest.raises(ModelError) as caught:
        parse_model(text)

    assert message in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_part_of_a_name_that_could_be_an_effort_stays_where_the_server_names_it() -> None:
    assert parse_model("qwen:high@http://h/v1").name == "qwen:high"
    assert parse_model("acme:high").provider == "acme"


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (
            "opnrouter:x",
            "*no provider for 'opnrouter:x' (did you mean 'openrouter:'?): write a host*",
        ),
        ("user:secret@host", "*no provider for 'user:***@host': write a host*"),
        ("acme:claude@20251001", "*no provider for 'acme:claude@20251001': write a host*"),
    ],
)
def test_an_unknown_host_is_refused_in_one_line(
    run_once: Run, write_skill: WriteSkill, spec: str, said: str
) -> None:
    write_skill()

    result = run_once("--upskill-models", spec, "skills")

    assert result.ret == 4
    result.stderr.fnmatch_lines([said])
    assert "secret" not in result.stderr.str()
