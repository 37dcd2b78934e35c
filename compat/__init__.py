"""Proof of compatibility: other people's suites and programs on a chosen event loop, beside stock asyncio.

`python -m compat --help` says how. What each file is for:
    loops.py         the loops that can be put to the test, by name
    install.py       makes a chosen loop the one that asyncio hands out
    child.py         runs tests in a process of their own and reports each as it happens
    runner.py        starts such processes, survives their crashes and hangs
    expectations.py  what is known to differ, and why: read from expectations/*.toml
    verdict.py       candidate against control: what is fine and what fails the run
    report.py        tables for the terminal and for docs/compatibility.md
    suites/          one file a suite: where its tests come from
    behaviours/      our own checks of what asyncio promises, one small test each
    apps/            workloads of real applications
"""
