"""How the items of a session get their answers, in one process or under pytest-xdist."""
