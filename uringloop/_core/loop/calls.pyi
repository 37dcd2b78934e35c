# What it defines becomes methods of Loop: see loop.pyi. uringloop/loop.py imports it for that.
