"""Reports that are written to files."""
