"""Reports of a session: terminal tables, files, JUnit properties, merging."""
