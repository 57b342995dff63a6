"""Keys are planted wherever one can come from; nothing that a run writes or prints holds any."""

from __future__ import annotations

import base64
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_upskill.report.exit_code import NOT_MEASURED
from tests.conftest import QUESTION, Run, WriteSkill, budget_cases
from tests.loopback import Loopback, Received, Reply

KEYS = {
    name: f"sk-planted-{number:02}-{name.lower().replace('_', '')}"
    for number, name in enumerate(
        (
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "OPENAI_API_KEY",
            "OPENAI_ORG_ID",
            "UPSKILL_API_KEY_A",
            "UPSKILL_API_KEY_B",
            "HF_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "GITHUB_TOKEN",
        )
    )
}
PASSWORD = "sk-planted-in-a-url"
ATTACK = """\
```c
#include "{home}/.env"
#include "/proc/self/environ"
asm(".include \\"/proc/self/environ\\"");
```
```python
import os
print(os.environ)
print(open({home!r} + "/.env").read())
```
"""


@dataclass(frozen=True, kw_only=True)
class Planted:
    folder: Path
    """Of temporary files, and of the home with a secret file in it."""
    secrets: list[bytes]
    """In every form in which one is sent."""


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Planted:
    """Plant a secret wherever one can come from."""
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HTTPS_PROXY", f"http://someone:{PASSWORD}@127.0.0.1:9")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".env").write_text("KEY=sk-planted-in-a-file\n")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    # What the workers were handed stays, to be looked at.
    monkeypatch.setattr("pytest_upskill.session.xdist.shutil.rmtree", lambda *_, **__: None)
    secrets = [*KEYS.values(), PASSWORD, "sk-planted-in-a-file"]
    encoded = [base64.b64encode(f"someone:{PASSWORD}".encode())]
    return Planted(folder=tmp_path, secrets=[*(each.encode() for each in secrets), *encoded])


@pytest.mark.needs("gcc")
def test_nothing_that_a_run_leaves_or_prints_holds_a_key(
    run: Run,
    write_skill: WriteSkill,
    loopback: Loopback,
    planted: Planted,
    pytester: pytest.Pytester,
) -> None:
    home = planted.folder / "home"
    attack = {"compile": "c", "run": {"language": "python", "code": "assert not 1"}}
    write_skill(
        {"id": "attack", "input": QUESTION, "expected": attack},
        {"id": "refused", "input": "Refuse me.", "expected": {"contains": "x"}},
    )

    def answer(received: Received) -> Reply:
        if received.user == "Refuse me.":
            # As some servers do, key and all.
            return Reply(status=401, body=f"bad credentials: {dict(received.headers)}")
        return Reply(text=ATTACK.format(home=str(home)))

    loopback.answer = answer
    address = loopback.openai_url.removeprefix("http://")
    result = run(
        f"--upskill-models=a=anthropic:one@{loopback.url}",
        f"--upskill-models=b=openai:two@http://someone:{PASSWORD}@{address}",
        *(f"--upskill-{name}=out/{name}" for name in ("json", "md", "html")),
        *("--junitxml=out/junit.xml", "--log-file=out/log", "--log-file-level=DEBUG"),
        *("-rA", "-vv", "--tb=long", "--showlocals", "skills"),
    )

    files = [*pytester.path.rglob("*"), *planted.folder.rglob("*")]
    written = {path: path.read_bytes() for path in files if path.is_file()}
    del written[home / ".env"]
    written[Path("terminal")] = (result.stdout.str() + result.stderr.str()).encode()
    assert {received.user for received in loopback.requests} == {QUESTION, "Refuse me."}
    assert {"junit.xml", "json", "md", "html", "log"} <= {path.name for path in written}
    assert any(".upskill" in path.parts for path in written)
    leaks = [
        (path, secret)
        for path, text in written.items()
        for secret in planted.secrets
        if secret in text
    ]
    assert leaks == []


@pytest.mark.parametrize(
    ("model", "variables"),
    [
        ("haiku", {"ALL_PROXY": "ftp://127.0.0.1:9"}),
        ("gpt-6-luna", {"ALL_PROXY": "ftp://127.0.0.1:9"}),
        ("gpt-6-luna", {"SSL_CERT_FILE": "/no/such/file.pem"}),
    ],
)
def test_a_client_that_cannot_be_made_is_one_line_without_the_key(
    run_once: Run,
    write_skill: WriteSkill,
    planted: Planted,
    monkeypatch: pytest.MonkeyPatch,
    model: str,
    variables: dict[str, str],
) -> None:
    write_skill(*budget_cases(2))
    for name, value in {"HTTPS_PROXY": "", **variables}.items():
        monkeypatch.setenv(name, value)

    result = run_once(
        "--upskill-models", model, "--upskill-cache=off", "--junitxml=x.xml", "skills"
    )

    assert result.ret == NOT_MEASURED
    result.stdout.fnmatch_lines(
        [
            "cannot create a client for api.*.com (*): check *",
            "*1 error, 3 more with the same cause*",
        ]
    )
    told = result.stdout.str() + Path("x.xml").read_text("utf-8")
    assert not [secret for secret in planted.secrets if secret.decode() in told]


@pytest.mark.parametrize("url", ["127.0.0.1:1", "http://127.0.0.1:abc", "http://[::1/v1"])
def test_a_vendors_host_that_is_no_url_is_refused_by_the_name_of_its_variable(
    run_once: Run, write_skill: WriteSkill, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    write_skill()
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-1234567")
    monkeypatch.setenv("OPENAI_BASE_URL", url)

    result = run_once("--upskill-models", "gpt-6-luna", "skills")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: OPENAI_BASE_URL *: write it as https://host/path"])
