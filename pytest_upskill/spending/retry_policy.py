"""The limits of retries, and the pauses between them."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_upskill.completion import ProviderError

_MOST_DOUBLINGS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """The limits of retries; times in seconds."""

    deadline: float = 300.0
    """Time after which no new attempt starts; waits for slots do not count."""
    outage_deadline: float = 60.0
    """Replaces ``deadline`` if the host returns only 502 and 503 and is not loading a model."""
    first_backoff: float = 0.5
    longest_backoff: float = 8.0
    longest_retry_after: float = 60.0
    """Maximum wait for a server's ``Retry-After``."""
    max_silent_attempts: int = 3
    """Maximum attempts, one after the other, at a host that has never replied to any request."""
    max_queued_timeouts: int = 5
    """Timeouts of a completion in the host's own queue that do not count towards ``deadline``."""
    max_long_timeouts: int = 2
    """The same for timeouts while others were in flight, but probably not in a queue.

    The host may have begun late, or become slower by serving several requests at once.
    """
    max_malformed_replies: int = 5
    """Maximum attempts if replies with status 200 are malformed, as each may be billed."""
    same_refusals: int = 3
    """Number of equal errors after which a model that has never answered is stopped."""

    def pause(self, failures: int, error: ProviderError, *, jitter: float = 0.0) -> float:
        """Return the seconds until the next attempt: they double, up to a limit.

        They are at least the host's ``Retry-After``, up to ``longest_retry_after``.

        Args:
            failures: Number of failures so far.
            error: The last failure.
            jitter: Share of the first backoff to add, so that requests do not return together.
        """
        # A host may fail very often in a long session, and 2.0 ** 1024 is too large a number.
        doubled = 2.0 ** min(failures - 1, _MOST_DOUBLINGS)
        backoff = self.first_backoff * (doubled + jitter)
        retry_after = min(error.retry_after or 0.0, self.longest_retry_after)
        return max(min(backoff, self.longest_backoff), retry_after)
