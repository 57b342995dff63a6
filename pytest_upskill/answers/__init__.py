"""Run trials: request their answers ahead of need, from recordings or from models."""
