"""Which core the server gets and which the client: never the same one when there are two."""

from __future__ import annotations

import os
from functools import cache


@cache
def server_and_client_core() -> tuple[int, int]:
    cores = sorted(os.sched_getaffinity(0))
    return cores[0], cores[1 % len(cores)]
