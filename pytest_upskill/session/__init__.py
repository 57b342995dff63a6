"""What happens in a run of pytest."""
