"""Programs that are agents, such as Claude Code: how each is found, started and read."""
