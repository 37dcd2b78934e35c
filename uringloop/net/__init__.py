"""asyncio's methods for the network, processes and signals: one family of methods per file."""
