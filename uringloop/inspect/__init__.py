"""Looking at loops: what they did, what they have in the kernel, what this machine offers. Free until asked."""

from uringloop.inspect.operations import Operation
from uringloop.inspect.prometheus import prometheus_text
from uringloop.inspect.statistics import Statistics

__all__ = ["Operation", "Statistics", "prometheus_text"]
