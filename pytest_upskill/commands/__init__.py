"""The console script ``pytest-upskill``: everything that is not a test run."""
