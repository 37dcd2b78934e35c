"""The commands of `python -m uringloop`, one per file: each has `arguments(parser)` and `main(options)`."""
