"""The fixture of an installed Claude Code, for every test of agents."""

from __future__ import annotations

from tests.agent_programs import claude
