"""The plugin's part in a pytest session: settings, items, fetching, results."""
