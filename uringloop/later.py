"""Later: a method of a class whose code is imported when it is first used, because most programs never use it."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Later:
    """Stands in the class for the function `name` of `module`, and is replaced there by the function itself."""

    def __init__(self, module: str, name: str) -> None:
        self._module = module
        self._name = name

    def __set_name__(self, owner: type[Any], attribute: str) -> None:
        self._owner = owner
        self._attribute = attribute

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
        function = getattr(import_module(self._module), self._name)
        setattr(self._owner, self._attribute, function)
        return function.__get__(instance, owner)
