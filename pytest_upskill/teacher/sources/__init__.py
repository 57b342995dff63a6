"""What a teacher learns from: documents, traces of agents and skills, redacted and cut."""
