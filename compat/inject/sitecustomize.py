"""With this folder on PYTHONPATH, every Python that is started hands out the loop named by COMPAT_LOOP.

For suites that start Python programs of their own.
"""

import os
import sys
from pathlib import Path

if "COMPAT_LOOP" in os.environ:
    sys.path += [*os.environ["COMPAT_LOOP_HOME"].split(os.pathsep), str(Path(__file__).resolve().parents[2])]
    from compat.install import install

    install(os.environ["COMPAT_LOOP"])
