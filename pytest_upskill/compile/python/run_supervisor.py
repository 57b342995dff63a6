"""Start a process that runs an answer and its tests, and report the outcome.

Run in the sandbox as ``python -I -S -c SOURCE PLAN CHILD PRELOADED FILE…``. PLAN is a JSON file of
the test code, the names of its tests, and a mark; CHILD is the source of `run_tests`. PLAN is
deleted before the answer starts, and the test code is sent to the answer's process after the import
of the answer, which therefore cannot read it. No code of the answer is imported here.

Lines that start with the mark are verdicts of this process: the answer can write where this process
writes, but does not know the mark.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import secrets
import select
import subprocess
import sys

_PR_SET_DUMPABLE = 4
_PAUSE_S = 0.1


def main() -> int:
    """Run everything; return the exit status."""
    plan_file, child, preloaded, *files = sys.argv[1:]
    with open(plan_file, encoding="utf-8") as file:  # noqa: PTH123 - pathlib doubles the start time
        plan = json.load(file)
    os.unlink(plan_file)  # noqa: PTH108 - as above
    if sys.platform == "linux":
        # Otherwise the answer could read this process's descriptors and memory through /proc.
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    code, reports = _run(plan["code"], child, preloaded, files)
    if code == 0 and reports and reports[-1][0] == "done":
        ran = {name for event, name in reports if event == "ran"}
        skipped = {name for event, name in reports if event == "skipped"}
        missed = [name for name in plan["names"] if name not in ran | skipped]
        if missed and not any(event == "skipped_all" for event, _ in reports):
            _print(f"{missed[0]} did not run\n")
            return 1
        ran_script = plan["is_script"] and not plan["names"]
        verdict = "passed" if ran or ran_script else "nothing ran"
        _print(f"\n{plan['mark']}{verdict}\n")
    return 128 - code if code < 0 else code


def _run(
    test_code: str, child: str, preloaded: str, files: list[str]
) -> tuple[int, list[tuple[str, str]]]:
    """Run the tests in a child process; return its exit status and its reports, event and name."""
    tests_in, tests_out = os.pipe()
    report_in, report_out = os.pipe()
    secret = secrets.token_hex(16)
    command = [sys.executable, "-I", "-S", "-B", "-u", "-c", child]
    process = subprocess.Popen(  # noqa: S603 - in the sandbox
        [*command, str(tests_in), str(report_out), preloaded, *files],
        stdin=subprocess.DEVNULL,
        pass_fds=(tests_in, report_out),
    )
    os.close(tests_in)
    os.close(report_out)
    output = b""
    while True:
        if not select.select([report_in], [], [], _PAUSE_S)[0]:
            # Processes that the child leaves behind may keep descriptors open.
            if process.poll() is not None:
                break
            continue
        chunk = os.read(report_in, 1 << 16)
        if not chunk:
            break
        is_first = b"\n" not in output
        output += chunk
        if is_first and b"\n" in output:
            with contextlib.suppress(OSError), os.fdopen(tests_out, "wb") as pipe:
                pipe.write(f"{secret}{test_code}".encode("utf-8", "surrogatepass"))
    return process.wait(), _reports(output, secret)


def _reports(output: bytes, secret: str) -> list[tuple[str, str]]:
    """Return the reports that carry the secret."""
    reports = []
    for line in output.decode("utf-8", "replace").split("\n"):
        known, _, report = line.partition(" ")
        event, _, name = report.partition(" ")
        if known == secret and event:
            reports.append((event, name))
    return reports


def _print(text: str) -> None:
    os.write(1, text.encode("utf-8", "replace"))


if __name__ == "__main__":
    sys.exit(main())
