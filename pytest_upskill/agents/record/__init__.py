"""What is recorded of a run: what the agent did with the skill, and the files that it left."""
