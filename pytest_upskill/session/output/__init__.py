"""What a run of pytest prints and writes."""
