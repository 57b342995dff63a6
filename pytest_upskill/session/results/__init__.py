"""What the trials came to: cells, gates, baselines, the exit code."""
