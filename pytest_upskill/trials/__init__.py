"""Trials: a case on a model in an arm, what is requested and chosen in it, and its result."""
