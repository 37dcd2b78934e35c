"""asyncio's methods for the network, processes and signals: one family of methods per file."""

import socket
from asyncio import streams

# The classes themselves: a test suite may replace them with functions, before the file that needs them is imported.
Socket = socket.socket
StreamReaderProtocol = streams.StreamReaderProtocol
