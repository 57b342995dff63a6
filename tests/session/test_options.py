"""Options: what is refused, and which source of a setting comes first."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.conftest import Run
from tests.loopback import Loopback
from tests.session.refused import only_line

pytestmark = pytest.mark.usefixtures("skill")

OFFLINE = ("--upskill-models", "offline")


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (("--upskill-runs", "0"), "--upskill-runs: must be at least 1, got *0*"),
        (("--upskill-runs", "many"), "--upskill-runs: must be a whole number, got *many*"),
        (
            ("--upskill-min-lift", "20"),
            "--upskill-min-lift: must be at most 1, got *20*: write 0.2 for 20 %",
        ),
        (
            ("--upskill-min-lift", "20%"),
            "--upskill-min-lift: must be a number such as 0.2, got *20%*",
        ),
        (
            ("--upskill-min-pass-rate", "-0.1"),
            "--upskill-min-pass-rate: must be at least 0, got *-0.1*",
        ),
        (("--upskill-max-cost", "0"), "--upskill-max-cost: must be more than 0, got *0*"),
        (("--upskill-max-cost", "nan"), "--upskill-max-cost: must be a number, got *nan*"),
        (
            ("--upskill-cache", "perhaps"),
            "--upskill-cache: must be 'auto', 'refresh', 'replay' or 'off', got *perhaps*",
        ),
        (
            ("--upskill-models", "m=offline,m=haiku"),
            "--upskill-models: models * would both have the label 'm': *, as in 'other=haiku'",
        ),
        (
            ("--upskill-base-url", "127.0.0.1:8080/v1"),
            "--upskill-base-url: '127.0.0.1:8080/v1' is not the URL of a server: write *",
        ),
        (("--upskill-cache-dir", ""), "--upskill-cache-dir: the path is empty: write a path, *"),
        (("-o", "upskill_aliases=x"), "upskill_aliases: bad line 'x': write 'name = model'"),
        (("-o", "upskill_prices=m: 1"), "upskill_prices: bad line 'm: 1': write 'label = IN/OUT'*"),
        (
            ("-o", "upskill_prices=m = 1/2 cached 3"),
            "upskill_prices: m: cached tokens cannot cost more *",
        ),
    ],
)
def test_an_option_that_cannot_be_used_is_refused_in_one_line(
    run_once: Run, args: tuple[str, ...], problem: str
) -> None:
    result = run_once(*OFFLINE, *args, "skills")

    pytest.LineMatcher([only_line(result)]).fnmatch_lines([problem.replace("[", "[[]")])


@pytest.mark.parametrize("given", ["--upskill-model", "--upskil-models=x"])
def test_a_misspelled_option_is_answered_by_the_right_one(run_once: Run, given: str) -> None:
    name = given.partition("=")[0]

    lines = run_once(*OFFLINE, given, "skills").errlines

    assert f"  {name}: did you mean '--upskill-models'?" in lines


def test_no_option_is_offered_that_only_the_settings_have(run_once: Run) -> None:
    lines = run_once(*OFFLINE, "--upskill-case_files=x", "skills").errlines

    assert not [line for line in lines if "'--upskill-case-files'" in line]


@pytest.mark.parametrize("given", [[","], ["offline", ","], ["", "offline"]])
def test_an_empty_list_of_models_is_refused_in_one_line(run_once: Run, given: list[str]) -> None:
    result = run_once(*(f"--upskill-models={models}" for models in given), "skills")

    assert only_line(result) == "--upskill-models: no model given: write a name, such as offline"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pytest.ini", "[pytest]\nupskill_runs = many\n"),
        ("pyproject.toml", '[tool.pytest]\nupskill_runs = "3"\n'),
        ("pytest.toml", "[pytest]\nupskill_runs = 0\n"),
    ],
)
def test_a_bad_number_in_the_configuration_is_refused_with_its_place(
    run_once: Run, name: str, text: str
) -> None:
    Path(name).write_text(text)

    line = only_line(run_once(*OFFLINE, "skills"))

    assert line.count("upskill_runs") == 1
    assert line.count(name) == 1
    assert "literal" not in line


@pytest.mark.parametrize(
    ("key", "more"), [("models", ()), ("judge", OFFLINE)], ids=["models", "judge"]
)
def test_a_model_that_the_configuration_misspells_is_refused_with_its_place(
    run_once: Run, key: str, more: tuple[str, ...]
) -> None:
    Path("pytest.ini").write_text(f"[pytest]\nupskill_{key} = ofline\n")

    line = only_line(run_once(*more, "skills"))

    assert line.startswith(f"upskill_{key} in {Path('pytest.ini').absolute()}: ")


def test_all_missing_keys_are_reported_at_once(run_once: Run) -> None:
    result = run_once("--upskill-models", "haiku,openai:gpt-6-luna", "skills")

    lines = [line for line in result.errlines if line]
    assert [line.partition(": set ")[2] for line in lines] == [
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
    ]


def test_a_model_that_no_selected_trial_needs_needs_no_key(run_once: Run) -> None:
    result = run_once("--upskill-models", "haiku,offline", "-k", "offline", "skills")

    assert result.ret == pytest.ExitCode.OK
    assert result.parseoutcomes()["passed"] == 3


def test_a_missing_sdk_is_one_line_with_the_command_that_installs_it(
    run_once: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")

    result = run_once("--upskill-models", "openai:gpt-6-luna", "skills")

    assert only_line(result) == (
        "gpt-6-luna: needs the openai SDK: pip install 'pytest-upskill[openai]'"
    )


INI = """
[pytest]
upskill_models = offline
upskill_runs = 3
upskill_min_pass_rate = 0.5
upskill_aliases =
    small = offline
"""
TOML = """
[tool.pytest]
upskill_models = ["offline"]
upskill_runs = 3
upskill_min_pass_rate = 0.5
upskill_aliases = ["small = offline"]
"""


@pytest.mark.parametrize(("name", "text"), [("pytest.ini", INI), ("pyproject.toml", TOML)])
def test_every_option_is_a_key_of_the_configuration_before_which_the_command_line_comes(
    run_once: Run, name: str, text: str
) -> None:
    Path(name).write_text(text)

    configured = run_once("skills")
    commanded = run_once("--upskill-models", "small", "--upskill-runs", "2", "skills")

    configured.stdout.fnmatch_lines(["upskill: offline (offline:offline); runs: 3; *"])
    commanded.stdout.fnmatch_lines(["upskill: small (offline:offline); runs: 2; *"])
    for result in (configured, commanded):
        result.assert_outcomes(passed=3)


def test_an_alias_of_the_configuration_comes_before_ours(
    run_once: Run, pytester: pytest.Pytester
) -> None:
    pytester.makeini("[pytest]\nupskill_aliases =\n    haiku = offline\n")

    result = run_once("--upskill-models", "haiku", "skills")

    result.stdout.fnmatch_lines(["upskill: haiku (offline:offline); runs: 1"])


def test_the_base_url_serves_names_of_no_known_provider(run_once: Run, loopback: Loopback) -> None:
    run_once("--upskill-models", "some/model", "--upskill-base-url", loopback.openai_url, "skills")

    assert [received.body["model"] for received in loopback.requests] == ["some/model"] * 2


def test_a_base_url_that_no_model_uses_is_refused_with_the_cure(
    run_once: Run, loopback: Loopback
) -> None:
    args = ("--upskill-models", "haiku,openai:small", "skills")
    result = run_once(*args, "--upskill-base-url", loopback.openai_url)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    said = "--upskill-base-url: only for models that name no host, and each of these does: write "
    result.stderr.fnmatch_lines([f"ERROR: {said}MODEL@URL to send one there, or remove the option"])
    assert not loopback.requests


@pytest.mark.parametrize(
    "args",
    [
        ("--upskill-models", "haiku,some/model", "--upskill-base-url={}"),
        ("--upskill-models", "haiku", "--upskill-judge=some/judge", "--upskill-base-url={}"),
        ("--upskill-models", "haiku", "-o", "upskill_base_url={}"),
        ("--upskill-models", "some/model", "--upskill-base-url=http://me:secret@127.0.0.1:1/v1"),
    ],
)
def test_a_base_url_may_serve_some_models_or_later_ones(
    run_once: Run, loopback: Loopback, args: tuple[str, ...]
) -> None:
    filled = [arg.format(loopback.openai_url) for arg in args]

    result = run_once(*filled, "--upskill-dry-run", "skills")

    assert result.ret == pytest.ExitCode.OK


def test_the_output_limit_is_what_the_model_is_sent(run_once: Run, loopback: Loopback) -> None:
    url = loopback.url

    run_once("--upskill-models", f"anthropic:m@{url}", "--upskill-max-tokens", "321", "skills")

    assert [received.body["max_tokens"] for received in loopback.requests] == [321, 321]


def test_no_more_requests_are_in_flight_than_the_concurrency(
    run_once: Run, loopback: Loopback
) -> None:
    models = ("--upskill-models", f"m@{loopback.openai_url}", "--upskill-concurrency", "2")

    run_once(*models, "--upskill-runs", "8", "skills")

    assert len(loopback.requests) == 16
    assert loopback.peak <= 2


def test_help_shows_the_options_by_what_they_are_for(run_once: Run) -> None:
    lines = run_once("--help").outlines

    groups = [line for line in lines if line.startswith("agent skills")]
    assert groups == [
        "agent skills: run:",
        "agent skills: gate:",
        "agent skills: triggers:",
        "agent skills: costs and recordings:",
        "agent skills: reports:",
    ]
    gate = lines.index("agent skills: gate:")
    assert any(line.startswith("  --upskill-min-lift") for line in lines[gate:])


def test_a_password_in_a_base_url_without_a_scheme_is_not_shown(run_once: Run) -> None:
    result = run_once("--upskill-models", "offline", "--upskill-base-url", "user:secret@h.example")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*@h.example' is not the URL of a server: write *"])
    result.stderr.no_fnmatch_line("*secret*")


def test_arguments_of_pytest_main_may_be_paths(pytester: pytest.Pytester) -> None:
    script = pytester.makepyfile(
        main="""
        from pathlib import Path

        import pytest

        raise SystemExit(pytest.main(["--upskill-models=offline", Path("skills")]))
        """
    )

    assert pytester.runpython(script).ret == pytest.ExitCode.OK
