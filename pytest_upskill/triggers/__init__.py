"""Whether an agent takes a skill: what it is shown, what it may call, and what it chose."""
