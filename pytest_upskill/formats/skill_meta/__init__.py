"""Read skill_meta.json, our own case file."""
