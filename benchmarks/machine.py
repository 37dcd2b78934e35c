"""Facts about the machine and the run: what a stranger needs to judge the figures."""

from __future__ import annotations

import os
import platform
import sys
import sysconfig
import time

from benchmarks.candidate import Candidate


def machine_facts(candidates: list[Candidate]) -> dict[str, str]:
    free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    return {
        "date": time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()),
        "kernel": f"{platform.system()} {platform.release()}",
        "processor": f"{processor()}, {len(os.sched_getaffinity(0))} cores of {os.cpu_count()} usable",
        "python": f"{platform.python_implementation()} {platform.python_version()}"
        + (" free-threaded" if free_threaded else ""),
        "compiler of python": platform.python_compiler(),
        "load at the end": " ".join(f"{load:.2f}" for load in os.getloadavg()),
        "versions": ", ".join(f"{c.name} {c.version()}" for c in candidates if not c.native),
        "command": "python -m benchmarks " + " ".join(sys.argv[1:]),
    }


def processor() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.machine()
