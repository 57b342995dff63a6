"""The history of a project's runs: plain files, one for each run, and their development."""
