# asyncio's transports: stream connections, datagrams, and the listeners that accept connections.
