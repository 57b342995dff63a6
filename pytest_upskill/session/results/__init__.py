"""The results of a session: cells, gates, baselines, the exit code."""
