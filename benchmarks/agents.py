"""Rows about agents: a program in its box beside the bare program, the proxy, replay, memory."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import httpx2
from measure import Cost, interleaved, serving, wall
from workbench import Bench, Row, healthy, pytest_run

from pytest_upskill.agents.program_client import CliClient
from pytest_upskill.agents.program_sandbox import ProgramSandbox
from pytest_upskill.agents.programs import ClaudeCode, Cli, Codex, NoAgentError
from pytest_upskill.agents.proxy import Proxy
from pytest_upskill.agents.self_test import SKILL, self_test_request
from pytest_upskill.agents.upstream import Upstream
from pytest_upskill.answers.budget import Budget
from pytest_upskill.answers.prices import Prices
from pytest_upskill.answers.progress import InFlight
from pytest_upskill.answers.retry import Pace, Retries
from pytest_upskill.models import Request, RunLimits, parse_model
from pytest_upskill.models.keys import Endpoint
from pytest_upskill.models.model import AGENTS
from pytest_upskill.sandbox.run import Sandbox, workspace

_ADAPTERS: Sequence[tuple[Callable[[], Cli], str]] = (
    (ClaudeCode, "claude-code:haiku"),
    (Codex, "codex:gpt-5-codex"),
)
_SKILL_MD = (
    f"---\nname: {SKILL}\ndescription: Writes a file. Use when asked for one.\n---\n\n# File\n\n"
    "Write done.txt with the word done in it, and nothing else.\n"
)
_PROBE = """\
def pytest_unconfigure():
    status = open("/proc/self/status").read()
    print("\\nOwn peak:", status.partition("VmHWM:")[2].split()[0], "kB")
"""
"""A conftest.py that tells the peak of the session's own memory, without its children."""


def boxed(bench: Bench) -> Iterator[Row]:
    """Run a task of three requests by the bare program and in the box with the proxy, in turn."""
    with serving("agent_server.py") as url:
        for adapter, model in _ADAPTERS:
            cli = adapter()
            try:
                version = cli.find().version
            except NoAgentError as error:
                print(f"row left out: {error}", file=sys.stderr)
                continue
            ours, bare, preparation = asyncio.run(_in_turn(cli, model, url, 2 * bench.repeats))
            yield Row(
                work=f"{cli.name} {version}: a task of three requests, in the box",
                measured=f"{ours:.2f} s (first run, with the self-test: {preparation:.2f} s)",
                floor=f"{bare:.2f} s bare program",
                ratio=f"{ours / bare:.2f}",
                bar="≤ 1.1",
                met=ours <= 1.1 * bare,
            )


async def _in_turn(cli: Cli, model: str, url: str, repeats: int) -> tuple[float, float, float]:
    """Return the medians of a run in the box and of the bare program, and the first run."""
    at = f"{url}/v1" if AGENTS[cli.name][0] == "responses" else url
    request = self_test_request(_request(f"{model}@{at}"))
    client = _client(cli, at)
    times: tuple[list[float], list[float]] = [], []
    try:
        first = await _timed(client, request)
        for _ in range(repeats):
            times[0].append(await _timed(client, request))
            times[1].append(await asyncio.to_thread(_bare, cli, request, url))
    finally:
        await client.aclose()
    return median(times[0]), median(times[1]), first


async def _timed(client: CliClient, request: Request) -> float:
    started = time.perf_counter()
    completion = await client.complete(request)
    taken = time.perf_counter() - started
    run = completion.agent_run
    assert run is not None
    if (run.limit or run.broken) or [file.text for file in run.changed] != ["done"]:
        raise RuntimeError(f"the agent did not do its task: {run}")
    return taken


def _bare(cli: Cli, request: Request, url: str) -> float:
    """Run the program as a user does, with the same arguments and files; return the seconds."""
    installed, launch = cli.find(), cli.launch(request, url)
    with tempfile.TemporaryDirectory(prefix="upskill-bare-") as folder:
        root = Path(folder)
        box = ProgramSandbox(root=root, installed=installed, launch=launch, has_own_user=False)
        box.prepare_folders(request)
        environment = {
            "PATH": f"{installed.program.parent}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(root / "home"),
            "TMPDIR": str(root / "tmp"),
            "SHELL": "/bin/bash",
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            **launch.environment,
        }
        with (root / "run" / "prompt").open("rb") as prompt:
            started = time.perf_counter()
            done = subprocess.run(
                [installed.program, *launch.arguments],
                cwd=root / "work",
                env=environment,
                stdin=prompt,
                capture_output=True,
                check=False,
            )
            taken = time.perf_counter() - started
        if not (root / "work" / "done.txt").exists():
            raise RuntimeError(f"{cli.name} did not do its task: {done.stdout.decode()[-2000:]}")
    return taken


def proxy(bench: Bench) -> Iterator[Row]:
    """Send requests as large as Claude Code's to the server, through the proxy and directly."""
    with serving("agent_server.py") as url:
        through, direct = asyncio.run(_both_ways(url, 5 * bench.repeats))
    more = 1000 * (through - direct)
    yield Row(
        work="a request of 90 kB with a streamed reply, through the proxy",
        measured=f"{1000 * through:.1f} ms",
        floor=f"{1000 * direct:.1f} ms directly",
        ratio=f"+ {more:.1f} ms",
        bar="≤ + 5 ms",
        met=more <= 5,
    )


async def _both_ways(url: str, repeats: int) -> tuple[float, float]:
    """Return the medians of a request through the proxy and directly."""
    request = self_test_request(_request(f"claude-code:haiku@{url}"))
    tool = {"name": "Bash", "description": "x" * 2_000, "input_schema": {"type": "object"}}
    body = {
        "model": "haiku",
        "max_tokens": 8_000,
        "stream": True,
        "system": [{"type": "text", "text": "You are an agent. " * 500}],
        "tools": [tool] * 25,
        "messages": [{"role": "user", "content": f"{_SKILL_MD}\n{'Do it. ' * 4_000}"}],
    }
    times: tuple[list[float], list[float]] = [], []
    with workspace() as home:
        upstream = _upstream(ClaudeCode(), url)
        budget = Budget(None, Prices({}))
        reserve = partial(budget.reserve_next, await budget.reserve(request))
        through = Proxy(request, ClaudeCode(), upstream, reserve, RunLimits())
        socket = home.root / "proxy"
        await through.start(socket)
        transport = httpx2.AsyncHTTPTransport(uds=str(socket))
        try:
            async with (
                httpx2.AsyncClient(transport=transport) as inside,
                httpx2.AsyncClient() as outside,
            ):
                for _ in range(min(repeats, 20)):
                    times[0].append(await _posted(inside, "http://proxy/v1/messages", body))
                    times[1].append(await _posted(outside, f"{url}/v1/messages", body))
        finally:
            await through.aclose()
            await upstream.aclose()
    # The first of each makes its connection.
    return median(times[0][1:]), median(times[1][1:])


async def _posted(client: httpx2.AsyncClient, url: str, body: Mapping[str, Any]) -> float:
    started = time.perf_counter()
    reply = await client.post(url, content=json.dumps(body).encode())
    taken = time.perf_counter() - started
    if "message_stop" not in reply.text:
        raise RuntimeError(reply.text)
    return taken


def replay(bench: Bench) -> Iterator[Row]:
    """Replay 100 runs of agents, and 100 requests of the same cases to a plain model."""
    with serving("agent_server.py") as url:
        sessions = []
        for agent in ("loop:", ""):
            root, cache = _skill(bench, cases=50, files=bool(agent)), bench.fresh()
            run = partial(_session, root, f"m={agent}tiny@{url}/v1", cache)
            healthy(run(), 50)
            sessions.append(partial(run, "--upskill-cache=replay"))
        ours, floor = interleaved(bench.repeats, *sessions)
    yield Row(
        work="100 replayed runs of agents",
        measured=f"{wall(ours):.2f} s",
        floor=f"{wall(floor):.2f} s for 100 replayed requests",
        ratio=f"{wall(ours) / wall(floor):.2f}",
        bar="≤ 2",
        met=wall(ours) <= 2 * wall(floor),
    )


def memory(bench: Bench) -> Iterator[Row]:
    """Run as many agents with few and with many in flight, and compare the session's own peak."""
    cores = len(os.sched_getaffinity(0))
    with serving("agent_server.py", "--latency=1") as url:
        for agent, program, few, many, cases in (
            ("loop:", "bwrap", 2, 40, 20),
            ("claude-code:", "claude", 1, 2 * cores, 2 * cores),
        ):
            if shutil.which(program) is None:
                print(f"row left out: there is no {program} on PATH", file=sys.stderr)
                continue
            root = _skill(bench, cases=cases, files=True)
            at = f"{url}/v1" if agent == "loop:" else url
            model = f"m={agent}{'tiny' if agent == 'loop:' else 'haiku'}@{at}"
            peaks: tuple[list[float], list[float]] = [], []
            for _ in range(min(3, bench.repeats)):
                for index, flight in enumerate((few, many)):
                    limit = f"--upskill-concurrency={max(1, flight // 2)}"
                    done = healthy(_session(root, model, bench.fresh(), limit), cases)
                    peaks[index].append(_own_peak(done))
            small, large = map(median, peaks)
            each = (large - small) / (many - few)
            yield Row(
                work=f"memory of the session, {many} runs of {agent[:-1]} in flight",
                measured=f"{large:.1f} MB",
                floor=f"{small:.1f} MB with {few}",
                ratio=f"{each:.2f} MB each",
                bar="≤ 1 MB each",
                met=each <= 1,
            )


def _own_peak(run: Cost) -> float:
    """Read what the probe in the rootdir's conftest.py said, in MB."""
    found = re.search(r"Own peak: (\d+) kB", run.output)
    assert found is not None
    return int(found[1]) * 1024 / 1e6


def _session(root: Path, model: str, cache: Path, *options: str) -> Cost:
    os.environ.setdefault("UPSKILL_API_KEY", "not-a-key")
    chosen = (f"--upskill-models={model}", f"--upskill-cache-dir={cache}")
    return pytest_run(root, *chosen, *options)


def _skill(bench: Bench, *, cases: int, files: bool) -> Path:
    """Write the skill of the scripted task with cases, on the file that it leaves or the answer."""
    root = bench.rootdir()
    (root / "conftest.py").write_text(_PROBE)
    folder = root / "skills" / SKILL
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(_SKILL_MD)
    expected = {"file_contains": {"done.txt": "done"}} if files else {"not_contains": "zebra"}
    made = [
        {"id": f"case-{number}", "input": f"Do task {number}.", "expected": expected}
        for number in range(cases)
    ]
    (folder / "skill_meta.json").write_text(json.dumps({"cases": made}))
    return root


def _request(model: str) -> Request:
    return Request(
        model=parse_model(model), frame="", skill="", user="Do it.", max_tokens=4096, run=0
    )


def _upstream(cli: Cli, url: str) -> Upstream:
    endpoint = Endpoint(wire="anthropic", url=url, key_variable="UPSKILL_API_KEY", key="not-a-key")
    slots = Pace(8)
    retries = Retries(pace=slots, host=endpoint.host, activity=InFlight())
    return Upstream(endpoint, AGENTS[cli.name][0], timeout=60.0, retries=retries)


def _client(cli: Cli, url: str) -> CliClient:
    return CliClient(
        cli=cli,
        installed=cli.find(),
        upstream=_upstream(cli, url),
        budget=Budget(None, Prices({})),
        slots=asyncio.Semaphore(2),
        sandbox=Sandbox("bwrap"),
    )
