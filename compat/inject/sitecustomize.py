"""With this folder on PYTHONPATH, every Python that is started hands out the loop named by COMPAT_LOOP.

For suites that start Python programs of their own, and for test runners that leave the loop to asyncio.
"""

import os
import sys
from pathlib import Path

if "COMPAT_LOOP" in os.environ:
    sys.path.append(str(Path(__file__).resolve().parents[2]))
    from compat.install import install

    install(os.environ["COMPAT_LOOP"])
