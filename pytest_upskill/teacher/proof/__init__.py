"""Proof on cases that are held out: hold-out, ledger, comparison, rule, and the decision."""
