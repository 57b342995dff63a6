"""What requests cost and how they are sent: budget, prices, retries, limits."""
