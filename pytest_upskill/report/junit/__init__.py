"""Properties of JUnit XML."""
