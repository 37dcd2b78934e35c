"""The commands of `python -m uringloop`, one a file: each has `arguments(parser)` and `main(options)`."""
