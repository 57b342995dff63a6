"""Between an agent's program in its sandbox and the host of its model."""
