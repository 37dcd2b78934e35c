"""The command line: `python -m compat [SUITE ...] [--loop NAME]`. Exit code 1: something differs."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from compat import control, expectations, loops, page, report, services, venvs, verdict
from compat.catalogue import SUITES
from compat.runner import Options, Outcome, Results, merged, run_suite
from compat.suite import Suite


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m compat", description="Run other people's test suites on an event loop."
    )
    parser.add_argument(
        "suites", nargs="*", metavar="SUITE", help=f"one of: {', '.join(SUITES)} (default: all)"
    )
    parser.add_argument("--loop", default="uringloop", help=f"{', '.join(loops.NAMED)} or module:function")
    parser.add_argument("--debug", action="store_true", help="asyncio's debug mode, on both loops")
    parser.add_argument("--tiny", action="store_true", help="the smallest ring and pools (URINGLOOP_TINY=1)")
    parser.add_argument("-k", dest="pattern", help="only tests whose name contains this (shell pattern)")
    parser.add_argument("--modules", nargs="+", help="only these modules of the suites")
    parser.add_argument("--jobs", type=int, default=1, help="test processes at a time")
    parser.add_argument(
        "--fresh-control", action="store_true", help="run the control again, even if it is on record"
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="every test as it ends, and tracebacks")
    parser.add_argument(
        "--report", type=Path, help="make the page docs/compatibility.md from the whole runs on record"
    )
    parser.add_argument("--list", action="store_true", help="name the suites")
    parser.add_argument("--json", type=Path, help="write every outcome to this file")
    return parser.parse_args()


def _run(suite_name: str, suite: Suite, arguments: argparse.Namespace) -> verdict.Verdict:
    modes = tuple(mode for mode in ("debug", "tiny") if getattr(arguments, mode))
    known = expectations.load(suite_name, arguments.loop, set(modes))
    modules = [module for module in suite.modules() if not arguments.modules or module in arguments.modules]
    python = str(venvs.python(suite_name, suite.requirements)) if suite.requirements else sys.executable

    def progress(test: str, outcome: Outcome) -> None:
        if arguments.verbose:
            print(f"{outcome.status:8} {outcome.seconds:7.2f} s  {test}", flush=True)

    with services.running(suite.services) as variables:

        def run(options: Options, wanted: list[str]) -> dict[str, Results]:
            return run_suite(
                suite_name, suite, wanted, options, 1 if suite.serial else arguments.jobs, progress
            )

        stock = Options(loops.STOCK, arguments.debug, python=python, variables=variables)
        reference = control.results(
            suite_name,
            arguments.debug,
            arguments.fresh_control,
            arguments.pattern,
            modules,
            lambda wanted: run(stock, wanted),
        )
        candidate = reference
        if arguments.loop != loops.STOCK:
            tested = Options(
                arguments.loop,
                arguments.debug,
                arguments.tiny,
                arguments.pattern,
                known.internal_patterns(),
                python,
                variables,
            )
            candidate = merged(run(tested, modules))
    whole = not (arguments.pattern or arguments.modules)
    return verdict.judge(suite_name, suite.title, arguments.loop, modes, reference, candidate, known, whole)


def main() -> int:
    arguments = _arguments()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A job in a shell's background is started so, and tests that interrupt themselves would inherit it and hang.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if arguments.list:
        for name, suite in SUITES.items():
            print(f"{name:16} {suite.title}")
        return 0
    # a page alone runs nothing
    wanted = arguments.suites or ([] if arguments.report else list(SUITES))
    verdicts = []
    incomplete = []
    for suite_name in wanted:
        if suite_name not in SUITES:
            raise SystemExit(f"no suite is called {suite_name!r}: {', '.join(SUITES)}")
        suite = SUITES[suite_name]
        if (reason := suite.missing()) is not None:
            incomplete.append(f"{suite_name} did not run: {reason}")
            continue
        judged = _run(suite_name, suite, arguments)
        report.print_verdict(judged, arguments.verbose)
        if not (arguments.pattern or arguments.modules):
            report.keep(judged)
        verdicts.append(judged)
    if arguments.json:
        report.write_json(arguments.json, verdicts)
    if arguments.report:
        page.write(arguments.report)
    if len(verdicts) > 1:
        report.print_summary(verdicts)
    for line in incomplete:
        print(line, file=sys.stderr)
    return 1 if incomplete or any(judged.failed() for judged in verdicts) else 0


if __name__ == "__main__":
    sys.exit(main())
