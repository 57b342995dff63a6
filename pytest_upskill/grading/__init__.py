"""Grade answers: by code, and by a judge."""
