import json
from pathlib import Path

from tests.examples.programs import output_of


def test_it_reports_traces_and_serves(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    *reports, count, served = output_of("diagnose.py", path).splitlines()
    assert any("think_hard has held the loop up" in line for line in reports)
    assert any("time.sleep(0.3)" in line for line in reports)
    events = json.loads(path.read_text())["traceEvents"]
    assert int(count.split()[0]) == len(events)
    (slow,) = (event for event in events if event["name"] == "think_hard")
    assert slow["dur"] >= 300_000 and slow["args"]["detail"] == "thinker"
    assert served.endswith(".sock")
