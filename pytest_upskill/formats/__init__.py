"""Read skills and their cases from files, in every shape that people have them in."""
