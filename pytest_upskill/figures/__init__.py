"""Cells: the figures of one skill on one model, the comparison with its past, and the gate."""
