"""Synchronisation across loops and threads: asyncio's interface, one primitive a module, on the waitlist."""
