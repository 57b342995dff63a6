"""The coding agent pi, which is no agent of ours: an adapter for comparisons with its catalogue."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_upskill.agents.programs.cli import Cli, Installed, Launch
from pytest_upskill.models import Request


class Pi(Cli):
    """An adapter of pi in the version that was compared."""

    name = "pi"
    tested_version = "0.74.2"
    wire = "messages"
    skills_folder = ".agents/skills"

    def find(self) -> Installed:
        program = Path(os.path.realpath(shutil.which("pi") or "pi"))
        package = json.loads((program.parents[1] / "package.json").read_text("utf-8"))
        return Installed(program=program, folder=program.parents[3], version=package["version"])

    def launch(self, request: Request, base_url: str) -> Launch:
        free = dict.fromkeys(("input", "output", "cacheRead", "cacheWrite"), 0)
        model = {"id": request.model.name, "contextWindow": 200_000, "maxTokens": 4096}
        served = {"baseUrl": base_url, "api": "anthropic-messages", "apiKey": "none"}
        provider = {**served, "models": [{**model, "cost": free, "input": ["text"]}]}
        return Launch(
            arguments=(
                *("--print", "--mode", "json", "--no-session"),
                *("--provider", "script", "--model", request.model.name),
            ),
            environment={"PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1"},
            home={".pi/agent/models.json": json.dumps({"providers": {"script": provider}})},
        )

    def self_test_calls(self, skill: str) -> list[Mapping[str, Any]]:
        return [
            {
                "name": "read",
                "input": {"path": f"/home/agent/{self.skills_folder}/{skill}/SKILL.md"},
            }
        ]
