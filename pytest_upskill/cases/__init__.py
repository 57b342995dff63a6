"""Skills, their cases and the catalogue, and the files that they are read from."""
