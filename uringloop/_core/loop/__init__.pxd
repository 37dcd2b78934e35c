# The event loop: its turn, and everything that a turn runs or waits for.
