"""Read evals files of other tools."""
