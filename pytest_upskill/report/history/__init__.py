"""The history of a project's runs: plain files, one a run, and what they show over time."""
