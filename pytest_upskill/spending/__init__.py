"""Budget, prices, retries and concurrency limits of requests."""
