"""Cells: what one skill is worth on one model, compared with what it was, and the gate."""
