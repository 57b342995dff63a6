"""Read skills and their cases from every supported file format."""
