"""Read ``skill_meta.json``, the native case file."""
