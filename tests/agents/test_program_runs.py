"""One run of a program in the sandbox: what it sees, what is read of it, and its limits."""

from __future__ import annotations

import asyncio
import ctypes
import platform
import socket
import time
from pathlib import Path

import pytest

from pytest_upskill.answers.budget import BudgetError
from pytest_upskill.checks.files import WorkspaceFile
from pytest_upskill.models import InstalledSkill, RunLimits
from pytest_upskill.sandbox.seccomp import BEYOND_NAMESPACES, numbers
from tests.agent_programs import (
    Recorded,
    agent_request,
    bash,
    client,
    completed,
    needs_bubblewrap,
    run_of,
    skill,
)

pytestmark = [pytest.mark.slow, needs_bubblewrap]

SKILL = (
    WorkspaceFile(
        name="SKILL.md",
        text="---\nname: billing\ndescription: How we bill.\n---\n\nWe send invoices on Mondays.\n",
    ),
    WorkspaceFile(name="references/days.md", text="Monday is the day of the invoices.\n"),
)
SUMS = (
    WorkspaceFile(name="SKILL.md", text="---\nname: sums\ndescription: d\n---\n\nAdd in cents.\n"),
)


def test_nothing_of_the_host_is_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-the-real-key-0123456789")
    (tmp_path / "secret").write_text("a secret of the host", "utf-8")
    with socket.create_server(("127.0.0.1", 0)) as host:
        port = host.getsockname()[1]
        files = f"{tmp_path}/secret /etc/passwd /proc/*/environ"
        look = f"touch /new /dev/new; env; id; ls -A / /home /tmp; cat {files}"
        dial = "import socket,sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 2)"
        upstream = Recorded(
            [
                bash(look),
                *(bash(f"python3 -c '{dial}' {at}") for at in (f"127.0.0.1 {port}", "1.1.1.1 53")),
            ]
        )

        asyncio.run(client(upstream).complete(agent_request()))

    assert "ANTHROPIC_BASE_URL=http://127.0.0.1:8787" in upstream.tool_results
    assert "(agent) gid=" in upstream.tool_results
    for hidden in ("the-real-key", "a secret of the host", "root:", str(Path.home().name) + ":x"):
        assert hidden not in upstream.tool_results
    # What is in memory has no limit: nothing can be written there.
    for name in ("/new", "/dev/new"):
        assert f"cannot touch '{name}'" in upstream.tool_results
    assert "Connection refused" in upstream.tool_results
    assert "Network is unreachable" in upstream.tool_results


def test_what_an_agent_did_is_read_from_its_requests() -> None:
    read = bash("cat ~/.claude/skills/billing/references/days.md; echo 1 > out.txt; rm in.txt")
    start = (WorkspaceFile(name="in.txt", text="x"), WorkspaceFile(name="kept.txt", text="y"))

    completion = completed(
        skill(), read, "Sent.", skill_name="billing", skill=SKILL, workspace=start
    )

    run = run_of(completion)
    assert (run.offered, run.called, run.loaded, run.broken) == (True, True, True, "")
    assert run.read == ("references/days.md",)
    assert [call.name for call in run.calls] == ["Skill", "Bash"]
    assert [(file.name, file.text) for file in run.changed] == [("out.txt", "1\n")]
    assert run.deleted == ("in.txt",)
    assert (len(run.turns), run.requests, run.version) == (3, 3, "9.9.9")
    assert (completion.text, completion.input_tokens, completion.output_tokens) == ("Sent.", 3, 3)
    assert completion.cost_usd == pytest.approx(0.15)
    assert completion.served_model == agent_request().model.name


@pytest.mark.parametrize(
    "command",
    [
        "cat ../home/agent/.claude/skills/billing/SKILL.md",
        "cat /home/agent/.claude/skills/billing/SKILL.md",
        "cat ~/.claude/skills/billing/SKILL.md",
        "cd ~/.claude/skills/billing && cat SKILL.md",
        "head -n 6 ~/.claude/skills/billing/SKILL.md",
        "sed -n '6p' ~/.claude/skills/billing/SKILL.md",
        "cat -n ~/.claude/skills/billing/SKILL.md | sed 's/^/    /'",
        "grep -rn invoices ~/.claude/skills",
        "cd ~/.claude; python3 -c 'print(repr(open(\"skills/billing/SKILL.md\").read()))'",
        "cat ~/.claude/skills/*/SKILL.md",
        "find ~ -name SKILL.md | xargs cat",
        "S=$HOME/.claude/skills/billing; cat $S/SKILL.md",
        "ln -s ~/.claude/skills r0; cat r0/billing/SKILL.md",
    ],
)
@pytest.mark.parametrize("chooses", [False, True])
def test_a_skill_is_read_in_whatever_way_its_text_comes(command: str, *, chooses: bool) -> None:
    run = run_of(
        completed(
            bash("ls"), bash(command), "Sent.", skill_name="billing", skill=SKILL, chooses=chooses,
            neighbours=(InstalledSkill(name="sums", files=SUMS),) if chooses else (),
        )
    )  # fmt: skip

    assert (run.loaded, run.taken) == ((None, "billing") if chooses else (True, ""))


def test_what_shows_only_the_frontmatter_or_the_name_does_not_load_a_skill() -> None:
    steps = (
        bash("head -n 4 ~/.claude/skills/billing/SKILL.md; ls -l ~/.claude/skills/billing"),
        bash("cat ~/.claude/skills/billing/references/days.md"),
    )

    run = run_of(completed(*steps, "Sent.", skill_name="billing", skill=SKILL))

    assert (run.called, run.loaded, run.read) == (False, False, ("references/days.md",))


def test_the_keyring_of_the_session_is_not_inside() -> None:
    call = dict(numbers(BEYOND_NAMESPACES, platform.machine()))
    libc = ctypes.CDLL(None)
    libc.syscall(call["add_key"], b"user", b"upskill-box", b"the-secret-key", 14, -3)
    ask = (
        "import ctypes; c = ctypes.CDLL(None).syscall; b = ctypes.create_string_buffer(99); "
        f'k = c({call["keyctl"]}, 10, -3, b"user", b"upskill-box", 0); '
        f'c({call["keyctl"]}, 11, k, b, 99); print("read", b.value)'
    )
    upstream = Recorded([bash(f"python3 -c '{ask}'; cat /proc/keys"), "Done."])

    asyncio.run(client(upstream).complete(agent_request()))

    assert "read b''" in upstream.tool_results
    assert "upskill-box: " not in upstream.tool_results


@pytest.mark.parametrize(
    ("command", "limits", "limit"),
    [
        ("true", RunLimits(), "it needs more than 3 turns"),
        ("sleep 60", RunLimits(seconds=1.0), "it took more than 1 s"),
    ],
)
def test_a_run_that_reaches_a_limit_ends_there(command: str, limits: RunLimits, limit: str) -> None:
    started = time.monotonic()

    completion = completed(*[bash(command)] * 9, limits=limits, max_turns=3)

    assert run_of(completion).limit == limit
    assert time.monotonic() - started < 20


def test_a_run_in_which_the_model_chooses_ends_with_its_choice() -> None:
    upstream = Recorded([bash("ls"), skill(), "Never asked for."])
    task = {"skill_name": "billing", "skill": SKILL, "chooses": True, "max_turns": 3}

    run = run_of(asyncio.run(client(upstream).complete(agent_request(**task))))

    assert (run.taken, run.requests, run.limit, run.broken) == ("billing", 2, "", "")
    assert (run.offered, run.loaded, run.changed) == (True, None, ())


def test_a_limit_of_cost_is_never_passed() -> None:
    upstream = Recorded([bash("true")] * 9)
    agent = client(upstream, limit=0.3)

    with pytest.raises(BudgetError, match="not sent"):
        asyncio.run(agent.complete(agent_request()))

    assert len(upstream.bodies) == 6  # of $.05 each


def test_two_runs_at_once_share_no_files() -> None:
    def steps(name: str) -> Recorded:
        return Recorded([bash(f"echo > {name}; sleep 1; ls /workspace ~ /tmp; ps -e || true")])

    async def both() -> list[Recorded]:
        upstreams = [steps("first.txt"), steps("second.txt")]
        await asyncio.gather(*(client(each).complete(agent_request()) for each in upstreams))
        return upstreams

    first, second = asyncio.run(both())

    assert ("first.txt" in first.tool_results, "second.txt" in first.tool_results) == (True, False)
    assert ("first.txt" in second.tool_results, "second.txt" in second.tool_results) == (
        False,
        True,
    )
