"""Settings of determinism: accepted, results never depend on threads."""

fill_uninitialized_memory = True
