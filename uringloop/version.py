"""The version, in the one place that says it: pyproject.toml reads it here."""

__version__ = "0.1.0.dev0"
