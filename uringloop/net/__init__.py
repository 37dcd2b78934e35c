"""The rooms of the network, processes and signals: one family of asyncio methods a file."""
