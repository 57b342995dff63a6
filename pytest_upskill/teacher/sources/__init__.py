"""A teacher's sources: documents, traces of agents, and skills, redacted and cut."""
