"""The page on performance is what the run on record makes of it."""

import pytest

from benchmarks import page


@pytest.mark.parametrize("name", [page.PAGE, page.PICTURE])
def test_the_page_is_of_the_run_on_record(name: str) -> None:
    made = page.pages(*page.load(page.RECORD))
    assert (page.PROJECT / name).read_text() == made[name], "run `python -m benchmarks.page`"


def test_losses_are_shown() -> None:
    results, _facts = page.load(page.RECORD)
    lost = [row for row in results.rows if (v := results.verdict(row, row.metrics[0])) and v.lost]
    assert (page.PROJECT / page.PAGE).read_text().count("**LOSS") >= len(lost)


@pytest.mark.parametrize(("load", "warned"), [("1.90 1.00 1.00", False), ("7.51 8.10 6.99", True)])
def test_a_busy_machine_is_named(load: str, warned: bool) -> None:
    assert ("had other work" in page.busy({"load at the end": load})) is warned
