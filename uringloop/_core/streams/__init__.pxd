# Compiled methods for asyncio's StreamReader and StreamWriter: reads and writes run no Python frames.
