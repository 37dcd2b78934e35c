"""The start of the Python processes that a program under `uringloop run` starts: they run on uringloop as well."""
