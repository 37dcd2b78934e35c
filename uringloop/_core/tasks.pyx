# create_task: a task of the class that asyncio has for them, made without BaseEventLoop's Python frame in between.
# Adds itself to Loop. Owns no task; runs none.
#
# Where there is a task factory, or something is wrong, BaseEventLoop's own says what is to be.
import inspect

from cpython.object cimport PyObject

from asyncio import base_events, tasks

from uringloop._core.kernel cimport ur_add_fast_method, ur_load_flag
from uringloop._core.loop cimport Loop

cdef extern from "Python.h":
    object PyObject_Vectorcall(object callable, PyObject **args, size_t nargsf, PyObject *kwnames)
    size_t PY_VECTORCALL_ARGUMENTS_OFFSET

cdef extern from *:
    Py_ssize_t PyTuple_GET_SIZE(PyObject *items) noexcept

cdef enum:
    MOST_KEYWORDS = 3

# Looked up at each call, as asyncio does: programs put classes of their own there.
cdef dict _tasks = tasks.__dict__
# For each way of giving keywords, in whatever order, those of Task itself: ours is first.
cdef dict _with_loop = {}
cdef tuple _LOOP = ("loop",)
cdef frozenset _known = frozenset(("name", "context"))

if any(p.kind is p.VAR_KEYWORD for p in inspect.signature(base_events.BaseEventLoop.create_task).parameters.values()):
    _known = _known | {"eager_start"}  # it passes on what it is given


cdef tuple _names(PyObject *given):
    """What Task is to be called with; None: not by us."""
    if given is NULL:
        return _LOOP
    names = <tuple> given
    found = _with_loop.get(names)
    if found is None and len(names) <= MOST_KEYWORDS and _known.issuperset(names):
        found = _with_loop[names] = ("loop", *names)
    return found


cdef object _create_task(PyObject *self, PyObject **args, Py_ssize_t nargs, PyObject *kwnames):
    cdef Loop loop = <Loop> self
    cdef PyObject *stack[MOST_KEYWORDS + 3]
    cdef tuple names
    cdef Py_ssize_t i
    if nargs == 1 and loop._task_factory is None and not ur_load_flag(&loop.closed):
        names = _names(kwnames)
        if names is not None:
            stack[1] = args[0]
            stack[2] = self
            for i in range(PyTuple_GET_SIZE(<PyObject *> names) - 1):
                stack[3 + i] = args[1 + i]
            return PyObject_Vectorcall(_tasks["Task"], &stack[1], 1 | PY_VECTORCALL_ARGUMENTS_OFFSET, <PyObject *> names)
    given = {} if kwnames is NULL else {name: <object> args[nargs + i] for i, name in enumerate(<tuple> kwnames)}
    positional = [<object> args[i] for i in range(nargs)]
    return base_events.BaseEventLoop.create_task(<object> self, *positional, **given)


ur_add_fast_method(Loop, "create_task", <void *> _create_task,
                   "Schedule a coroutine: asyncio's own Task, or what the task factory makes.")
