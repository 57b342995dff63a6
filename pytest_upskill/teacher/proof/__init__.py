"""Proof on cases that are held out: the hold-out, its ledger, the comparison and the rule."""
