"""The benchmark of asyncio event loops: every candidate interleaved, stock asyncio as control, losses
printed too.

Run it with ``python -m benchmarks``; ``benchmarks/README.md`` says what each row does and how a cell is made.
"""
