# The functions of this module become methods of Loop (see loop.pyi) when uringloop/loop.py imports it.
