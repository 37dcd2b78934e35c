# create_task and create_future as methods of Loop, which make asyncio's own Task and Future without BaseEventLoop's Python
# frame. Owns nothing. Unusual calls (a closed loop, wrong arguments, before Python 3.14 a task factory) go to
# BaseEventLoop, so that their results and errors are asyncio's.
import inspect
import sys

from asyncio import base_events, futures, tasks

from cpython.object cimport PyObject

from uringloop._core.loop.loop cimport Loop
from uringloop._core.lifetime.guard cimport ur_add_fast_method, ur_load_flag

cdef extern from "Python.h":
    object PyObject_Call(object callable, object args, object kwargs)
    object PyObject_Vectorcall(object callable, PyObject **args, size_t nargsf, PyObject *kwnames)
    size_t PY_VECTORCALL_ARGUMENTS_OFFSET

cdef extern from *:
    Py_ssize_t PyTuple_GET_SIZE(PyObject *items) noexcept
    PyObject *PyTuple_GET_ITEM(PyObject *items, Py_ssize_t i) noexcept

cdef enum:
    MOST_NAMED = 3

# The classes are looked up at each call, as in asyncio: programs replace them with their own.
cdef dict _tasks = tasks.__dict__
cdef dict _futures = futures.__dict__
cdef tuple _NO_ARGUMENTS = ()
# Interned, like the callers' names, so that they can be compared by identity.
cdef str _NAME = sys.intern("name")
cdef str _CONTEXT = sys.intern("context")
cdef str _EAGER_START = sys.intern("eager_start")

_signature = inspect.signature(base_events.BaseEventLoop.create_task)
cdef int _known = MOST_NAMED if inspect.Parameter.VAR_KEYWORD in {p.kind for p in _signature.parameters.values()} else 2
# From Python 3.14 on, a factory gets the arguments of create_task, which does nothing else with the task.
cdef bint FACTORY_GETS_ALL = sys.version_info >= (3, 14)

# The keyword names for Task, indexed by which of the three were given.
cdef tuple _names = tuple(
    ("loop", *(name for i, name in enumerate((_NAME, _CONTEXT, _EAGER_START)) if given & 1 << i))
    for given in range(1 << MOST_NAMED)
)


cdef int sort_named(PyObject **values, PyObject *kwnames, PyObject **sorted) noexcept:
    """Bring the keyword arguments into a fixed order; return which are given, or -1 for a name that Task may not know."""
    cdef PyObject *found[MOST_NAMED]
    cdef PyObject *name
    cdef Py_ssize_t i
    cdef int at, given = 0
    for i in range(PyTuple_GET_SIZE(kwnames)):
        name = PyTuple_GET_ITEM(kwnames, i)
        if name == <PyObject *> _NAME:
            at = 0
        elif name == <PyObject *> _CONTEXT:
            at = 1
        elif name == <PyObject *> _EAGER_START and _known == MOST_NAMED:
            at = 2
        else:
            return -1
        found[at] = values[i]
        given |= 1 << at
    for at in range(MOST_NAMED):
        if given & 1 << at:
            sorted[0] = found[at]
            sorted += 1
    return given


cdef object _create_task(PyObject *self, PyObject **args, Py_ssize_t nargs, PyObject *kwnames):
    cdef Loop loop = <Loop> self
    cdef PyObject *stack[3 + MOST_NAMED]  # a free place for the callee, the coroutine, the loop, the keyword arguments
    cdef int given = 0
    if nargs == 1 and not ur_load_flag(&loop.closed):
        if loop._task_factory is None:
            if kwnames is not NULL:
                given = sort_named(args + 1, kwnames, stack + 3)
            if given >= 0:
                stack[1] = args[0]
                stack[2] = self
                return PyObject_Vectorcall(_tasks["Task"], &stack[1], 1 | PY_VECTORCALL_ARGUMENTS_OFFSET,
                                           <PyObject *> _names[given])
        elif FACTORY_GETS_ALL and (kwnames is NULL or sort_named(args + 1, kwnames, stack + 3) >= 0):
            factory = loop._task_factory  # a reference of our own: the factory may set another one
            stack[1] = self
            stack[2] = args[0]
            if kwnames is not NULL:
                for given in range(<int> PyTuple_GET_SIZE(kwnames)):
                    stack[3 + given] = args[1 + given]
            return PyObject_Vectorcall(factory, &stack[1], 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, kwnames)
    named = {} if kwnames is NULL else {name: <object> args[nargs + i] for i, name in enumerate(<tuple> kwnames)}
    positional = [<object> args[i] for i in range(nargs)]
    return base_events.BaseEventLoop.create_task(<object> self, *positional, **named)


cdef object _create_future(PyObject *self, PyObject **args, Py_ssize_t nargs, PyObject *kwnames):
    if nargs or kwnames is not NULL:
        raise TypeError("create_future() takes no arguments")
    arguments = (<Loop> self).future_arguments
    if arguments is None:  # the loop is closed
        arguments = {"loop": <object> self}
    return PyObject_Call(_futures["Future"], _NO_ARGUMENTS, arguments)


# inspect.signature reads the first line: BaseEventLoop's own signature, which differs between Python versions. It is kept
# in a global, because the method refers to these bytes.
_described = (f"create_task{str(_signature).replace('(self', '($self', 1)}\n--\n\n"
              "Schedule a coroutine; return asyncio's own Task, or what the task factory makes.").encode()

ur_add_fast_method(Loop, "create_task", <void *> _create_task, <const char *> <bytes> _described)
ur_add_fast_method(Loop, "create_future", <void *> _create_future,
                   "create_future($self)\n--\n\nReturn a new future attached to the loop.")
