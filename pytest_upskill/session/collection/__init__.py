"""What pytest collects: case files, trials as items, and which of them run."""
