"""The process limits a benchmark needs: open files."""

from __future__ import annotations

import resource


def allow_files(wanted: int) -> int:
    """Raise the limit of open files towards `wanted`, also the hard one where we may; returns what is
    allowed now.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted
    for limit in ((wanted, max(hard, wanted)), (min(wanted, hard), hard)):
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, limit)
            break
        except (ValueError, OSError):
            continue
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
