"""Read the evals files of other tools."""
