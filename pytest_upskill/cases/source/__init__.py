"""Read JSON and YAML with the position of each value."""
