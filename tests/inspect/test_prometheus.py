import re
from typing import Any

from uringloop.inspect import prometheus_text
from uringloop.inspect.statistics import COUNTERS


def test_every_figure_is_there_once_for_each_loop(loop: Any) -> None:
    text = prometheus_text({"main": loop, 'a "second"\n': loop.statistics()})
    for line in text.splitlines():
        assert re.fullmatch(r'# (HELP|TYPE) \w+ .+|\w+\{loop="[^\n]+",engine="\w+"\} [\d.e+-]+', line), line
    for name in COUNTERS:
        assert text.count(f"\nuringloop_{name}_total{{") == 2
        assert f"# TYPE uringloop_{name}_total counter" in text
    assert 'loop="a \\"second\\"\\n"' in text
    assert "# TYPE uringloop_in_kernel gauge" in text
