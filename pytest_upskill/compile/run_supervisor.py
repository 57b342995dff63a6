"""Start a process that runs an answer and its tests, and report the outcome.

Run in the sandbox as ``python -I -S -c SOURCE PLAN CHILD PRELOADED FILE…``. PLAN is a JSON file of
the test code and the names of its tests; CHILD is the source of `run_tests`. PLAN is deleted before
the answer starts, and the test code is sent to the answer's process after the import of the answer,
which therefore cannot read it. No code of the answer is imported here.

The output of that process is passed on with ``| `` before each line. Lines that start with ``= ``
are verdicts of this process; the answer has no descriptor to which it could write one.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import secrets
import selectors
import subprocess
import sys
from typing import Any

_PR_SET_DUMPABLE = 4


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
    if code == 0 and reports and reports[-1].get("done"):
        ran = {report["ran"] for report in reports if "ran" in report}
        skipped = {report["skipped"] for report in reports if "skipped" in report}
        missed = [name for name in plan["names"] if name not in ran | skipped]
        if missed and not any("skipped_all" in report for report in reports):
            _print(f"| {missed[0]} did not run\n")
            return 1
        ran_script = plan["is_script"] and not plan["names"]
        _print("= passed\n" if ran or ran_script else "= nothing ran\n")
    return 128 - code if code < 0 else code


def _run(
    test_code: str, child: str, preloaded: str, files: list[str]
) -> tuple[int, list[dict[str, Any]]]:
    """Run the tests in a child process; return its exit status and its reports."""
    tests_in, tests_out = os.pipe()
    report_in, report_out = os.pipe()
    secret = secrets.token_hex(16)
    command = [sys.executable, "-I", "-S", "-B", "-u", "-c", child]
    process = subprocess.Popen(  # noqa: S603 - in the sandbox
        [*command, str(tests_in), str(report_out), preloaded, *files],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=(tests_in, report_out),
    )
    os.close(tests_in)
    os.close(report_out)
    said = b""
    sent = False
    assert process.stdout is not None
    output = process.stdout.fileno()
    with selectors.DefaultSelector() as selector:
        selector.register(output, selectors.EVENT_READ)
        selector.register(report_in, selectors.EVENT_READ)
        at_start = True
        # Stop when the child exits: processes that it leaves behind may keep descriptors open.
        while selector.get_map() and not (process.poll() is not None and not selector.select(0)):
            for key, _ in selector.select(0.1):
                chunk = os.read(key.fd, 1 << 16)
                if not chunk:
                    selector.unregister(key.fd)
                elif key.fd == output:
                    text = chunk.decode("utf-8", "replace")
                    lines = text.removesuffix("\n").replace("\n", "\n| ")
                    _print(("| " if at_start else "") + lines + ("\n" if text[-1] == "\n" else ""))
                    at_start = text[-1] == "\n"
                else:
                    said += chunk
            if b"\n" in said and not sent:
                sent = True
                with contextlib.suppress(OSError), os.fdopen(tests_out, "w") as pipe:
                    json.dump([secret, test_code], pipe)
        if not at_start:
            _print("\n")
    return process.wait(), _reports(said, secret)


def _reports(said: bytes, secret: str) -> list[dict[str, Any]]:
    """Return the reports that carry the secret."""
    reports = []
    for line in said.splitlines():
        try:
            known, report = json.loads(line)
        except (ValueError, TypeError):
            continue
        if known == secret and isinstance(report, dict):
            reports.append(report)
    return reports


def _print(text: str) -> None:
    os.write(1, text.encode("utf-8", "replace"))


if __name__ == "__main__":
    sys.exit(main())
