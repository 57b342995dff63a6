#!/usr/bin/env python3
"""A small program with the command line, the environment and the requests of Claude Code.

It offers the skills of its home folder, has the tools ``Skill`` and ``Bash``, and does what its
model says. It runs in the sandbox, under the name ``claude``.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any


def main() -> int:
    if "--version" in sys.argv:
        sys.stdout.write("9.9.9 (Claude Code)\n")
        return 0
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": f"{catalogue()}\n{sys.stdin.read()}"}
    ]
    while True:
        content = ask(messages)
        messages.append({"role": "assistant", "content": content})
        calls = [block for block in content if block["type"] == "tool_use"]
        if not calls:
            return 0
        results = [
            {"type": "tool_result", "tool_use_id": call["id"], "content": do(call)}
            for call in calls
        ]
        messages.append({"role": "user", "content": results})


def skills() -> dict[str, Path]:
    return {path.parent.name: path for path in Path.home().glob(".claude/skills/*/SKILL.md")}


def catalogue() -> str:
    found = (path.read_text("utf-8") for path in skills().values())
    return "\n".join(" ".join(re.findall(r"(?m)^(?:name|description): (.*)$", t)) for t in found)


def ask(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    body = {
        "model": sys.argv[sys.argv.index("--model") + 1],
        "max_tokens": 64000,
        "messages": messages,
        "stream": True,
        "tools": [
            {"name": name, "description": name, "input_schema": {"type": "object"}}
            for name in ("Skill", "Bash")
        ],
        **json.loads(os.environ.get("FAKE_EXTRA", "{}")),
    }
    request = urllib.request.Request(
        os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages?beta=true",
        json.dumps(body).encode(),
        {
            "content-type": "application/json",
            "x-api-key": os.environ["ANTHROPIC_API_KEY"],
            "anthropic-version": "2023-06-01",
        },
    )
    try:
        with urllib.request.urlopen(request) as reply:
            return blocks(reply.read().decode())
    except urllib.error.HTTPError as error:
        sys.stdout.write(error.read().decode())
        raise SystemExit(1) from None


def blocks(stream: str) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = []
    for line in stream.splitlines():
        if not line.startswith("data:"):
            continue
        event = json.loads(line[5:])
        if event["type"] == "content_block_start":
            content.append(event["content_block"] | {"partial": ""})
        elif event["type"] == "content_block_delta":
            part = event["delta"]
            content[event["index"]]["partial"] += part.get("text") or part.get("partial_json", "")
    for block in content:
        partial = block.pop("partial")
        if block["type"] == "tool_use":
            block["input"] = json.loads(partial)
        else:
            block["text"] = partial
    return content


def do(call: dict[str, Any]) -> str:
    if call["name"] == "Skill":
        path = skills().get(call["input"]["skill"])
        return path.read_text("utf-8") if path else "no such skill"
    done = subprocess.run(
        call["input"]["command"], shell=True, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


if __name__ == "__main__":
    sys.exit(main())
