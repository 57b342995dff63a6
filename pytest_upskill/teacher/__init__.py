"""A strong model writes skills and cases; what it writes is proved before it is kept."""
