"""Cases that a teacher proposes: validated, kept or dropped, and written."""
