# asyncio's StreamReader and StreamWriter, read and written without Python frames.
