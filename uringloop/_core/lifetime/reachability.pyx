# Reachability: which waiting tasks no live object can wake. It counts references as the garbage collector does, but a
# task that waits leads nowhere: its own coroutines can't set the future for which they wait. Such a task becomes live when
# a live object leads to that future; a task that never does waits for ever. Owns nothing between two calls, and never
# changes an object.
#
# What has more references than the collector can account for (from the stack of a thread, from C code, from objects that
# the collector does not track) is live, and so is all that it leads to, also through a weak reference. A mistake can
# therefore hide a task that waits for ever, but never invent one. Without the GIL references can't be counted: then all
# tasks are live.
from cpython.object cimport PyObject
from libc.stdint cimport uint8_t, uintptr_t
from libc.stdlib cimport calloc, free, realloc

from uringloop._core.lifetime.guard cimport UR_FREE_THREADED

import gc

cdef extern from *:
    """
    /* Borrowed. The functions that return it are deprecated or new, and the field has been there in all versions. */
    static inline PyObject *ur_weak_referent(PyObject *object) {
        PyObject *found = PyWeakref_Check(object) ? ((PyWeakReference *)object)->wr_object : NULL;
        return found == Py_None ? NULL : found;
    }
    static inline int ur_traverse(PyObject *object, visitproc visit, void *arg) {
        return Py_TYPE(object)->tp_traverse == NULL ? 0 : Py_TYPE(object)->tp_traverse(object, visit, arg);
    }
    static int ur_is_one_of(const char *name) {
        static const char *const names[] = {
            "Timeout", "CancelScope", "partial", "Handle", "TimerHandle", "EventLoop", "Timers", "ReadyQueue", "Inbox",
            NULL,
        };
        for (int i = 0; names[i] != NULL; i++)
            if (strcmp(name, names[i]) == 0) return 1;
        return 0;
    }
    static inline const char *ur_type_name(PyObject *object) { return Py_TYPE(object)->tp_name; }
    """
    ctypedef int (*visitor)(PyObject *, void *) noexcept
    PyObject *ur_weak_referent(PyObject *) noexcept
    int ur_traverse(PyObject *, visitor, void *) noexcept
    bint ur_is_one_of(const char *) noexcept
    const char *ur_type_name(PyObject *) noexcept
    Py_ssize_t Py_REFCNT(PyObject *) noexcept
    bint PyCFunction_Check(PyObject *) noexcept
    bint PyMethod_Check(PyObject *) noexcept
    bint PyCell_Check(PyObject *) noexcept
    bint PyTuple_CheckExact(PyObject *) noexcept
    bint PyDict_CheckExact(PyObject *) noexcept
    bint PyAnySet_CheckExact(PyObject *) noexcept
    PyObject *PyList_GET_ITEM(list, Py_ssize_t) noexcept

cdef extern from "string.h":
    const char *strrchr(const char *, int) noexcept

cdef enum:
    REACHED = 1    # a live object leads to it
    SUSPENDED = 2  # part of a waiting task: what it leads to is not reached through it
    ENDED = 4      # what may end a task leads to it

cdef enum:
    FROM_ANY = 0
    FROM_PART = 1   # the object being visited is a tuple, set or dictionary of one that may end tasks
    FROM_ENDER = 2  # the object being visited may end tasks


cdef struct Node:
    PyObject *object
    Py_ssize_t references  # those that no tracked object has shown
    uint8_t state


cdef struct Graph:
    Node *nodes       # a hash table with open addressing; its length is a power of two
    size_t mask
    PyObject **pending  # reached, and their own references not yet visited
    Py_ssize_t count, room
    int source
    bint failed       # out of memory


_FURTHER = ("cr_await", "gi_yieldfrom", "ag_await")
_WRAPPERS = ("async_generator_asend", "async_generator_athrow", "anext_awaitable", "coroutine_wrapper")
_COROUTINES = ("async_generator", "coroutine", "generator")


def unreachable(waiting):
    """For each of these suspended tasks, whether no live object can wake it. Takes all other tasks for live. Holds the GIL
    all the time. The caller must refer to none of the tasks' futures and coroutines: a variable is a live object."""
    cdef Graph graph
    cdef list held = []
    if UR_FREE_THREADED:
        return [False] * len(waiting)
    futures, parts = _collect(waiting, held)
    graph.nodes, graph.pending = NULL, NULL
    graph.count = graph.room = 0
    graph.failed = False
    try:
        _count_references(&graph, gc.get_objects(), held)
        return _settle(&graph, futures, parts)
    finally:
        free(graph.nodes)
        free(graph.pending)


cdef tuple _collect(object waiting, list held):
    """The address of each task's future (0: none), and the addresses of the task and its coroutines. Afterwards `held` has
    one reference to each of them; nothing else of ours has any."""
    cdef list futures = [], parts = []
    for task in waiting:
        future = getattr(task, "_fut_waiter", None)
        if future is not None:
            held.append(future)
        futures.append(0 if future is None else <uintptr_t> <PyObject *> future)
        own = []
        part = task
        while part is not None and len(own) < 100:
            held.append(part)
            own.append(<uintptr_t> <PyObject *> part)
            part = task.get_coro() if part is task else _next(part)
        parts.append(own)
    return futures, parts


cdef object _next(object coroutine):
    """The coroutine or generator that this one awaits; None if it awaits anything else."""
    found = None
    for name in _FURTHER:
        if found is None:
            found = getattr(coroutine, name, None)
    if type(found).__name__ in _WRAPPERS:
        for each in gc.get_referents(found):
            if type(each).__name__ in _COROUTINES:
                return each
    for name in _FURTHER:
        if hasattr(found, name):
            return found
    return None


cdef int _count_references(Graph *graph, list objects, list held) except -1:
    """Make a node of each object, and count its references that no other node shows."""
    cdef size_t length = 64, at
    cdef Py_ssize_t i
    cdef Node *node
    while length < 2 * <size_t> len(objects):
        length *= 2
    graph.nodes = <Node *> calloc(length, sizeof(Node))
    if graph.nodes is NULL:
        raise MemoryError
    graph.mask = length - 1
    for i in range(len(objects)):
        node = _place(graph, PyList_GET_ITEM(objects, i))
        node.object = PyList_GET_ITEM(objects, i)
        node.references = Py_REFCNT(node.object) - 1  # without that of `objects`
    node = _place(graph, <PyObject *> held)
    if node.object is not NULL:
        node.state = SUSPENDED
    for at in range(length):
        if graph.nodes[at].object is not NULL:
            ur_traverse(graph.nodes[at].object, _shown, graph)
    return 0


cdef Node *_place(Graph *graph, PyObject *object) noexcept:
    """The object's node, or the free one where it belongs."""
    cdef size_t at = (<uintptr_t> object >> 4) * <size_t> 0x9E3779B97F4A7C15 >> 20
    while True:
        at &= graph.mask
        if graph.nodes[at].object is NULL or graph.nodes[at].object is object:
            return &graph.nodes[at]
        at += 1


cdef int _shown(PyObject *object, void *argument) noexcept:
    cdef Node *node = _place(<Graph *> argument, object)
    if node.object is not NULL:
        node.references -= 1
    return 0


cdef list _settle(Graph *graph, list futures, list parts):
    """Let live objects reach what they lead to, and tasks become live, until no more do."""
    cdef Py_ssize_t i
    cdef list left = list(range(len(parts)))
    cdef list lost = [True] * len(parts)
    cdef size_t at
    for own in parts:
        for address in own:
            _place(graph, <PyObject *> <uintptr_t> address).state |= SUSPENDED
    for at in range(graph.mask + 1):
        if graph.nodes[at].object is not NULL and graph.nodes[at].references > 0:
            if graph.nodes[at].state & SUSPENDED or PyTuple_CheckExact(graph.nodes[at].object):
                graph.nodes[at].state |= ENDED  # it may be an argument of a handle, or all of them: cancel(task)
            _reach(graph, &graph.nodes[at])
    while not graph.failed:
        _reach_all(graph)
        still = []
        for i in left:
            if not _is_live(graph, futures[i], parts[i]):
                still.append(i)
                continue
            lost[i] = False
            for address in parts[i]:
                _revive(graph, _place(graph, <PyObject *> <uintptr_t> address))
        if len(still) == len(left):
            return lost
        left = still
    raise MemoryError


cdef bint _is_live(Graph *graph, uintptr_t future, list own):
    cdef Node *task = _place(graph, <PyObject *> <uintptr_t> own[0])
    cdef Node *waited = _place(graph, <PyObject *> future)
    if not future or task.object is NULL or waited.object is NULL or task.state & ENDED:
        return True  # the collector does not know one of them, or an object may end the task
    # A task that is awaited ends by itself: references to it wake nothing.
    return waited.state & REACHED and not waited.state & SUSPENDED


cdef void _revive(Graph *graph, Node *node) noexcept:
    if node.object is not NULL:
        node.state &= ~(SUSPENDED | REACHED)
        _reach(graph, node)


cdef void _reach(Graph *graph, Node *node) noexcept:
    cdef void *more
    node.state |= REACHED
    if graph.count == graph.room:
        more = realloc(graph.pending, 2 * (graph.room + 512) * sizeof(PyObject *))
        if more is NULL:
            graph.failed = True
            return
        graph.pending = <PyObject **> more
        graph.room = 2 * (graph.room + 512)
    graph.pending[graph.count] = node.object
    graph.count += 1


cdef void _reach_all(Graph *graph) noexcept:
    cdef Node *node
    cdef PyObject *referent
    while graph.count and not graph.failed:
        graph.count -= 1
        node = _place(graph, graph.pending[graph.count])
        if node.state & SUSPENDED:
            continue
        graph.source = FROM_ENDER if _ends_tasks(node.object) else FROM_PART if node.state & ENDED else FROM_ANY
        ur_traverse(node.object, _led_to, graph)
        referent = ur_weak_referent(node.object)
        if referent is not NULL:
            _led_to(referent, graph)


cdef int _led_to(PyObject *object, void *argument) noexcept:
    cdef Graph *graph = <Graph *> argument
    cdef Node *node = _place(graph, object)
    cdef uint8_t before = node.state
    if node.object is NULL:
        return 0
    if graph.source == FROM_ENDER or (graph.source == FROM_PART and before & SUSPENDED):
        if before & SUSPENDED or PyTuple_CheckExact(object) or PyAnySet_CheckExact(object) or PyDict_CheckExact(object):
            node.state |= ENDED
    if not before & REACHED or (node.state != before and not before & SUSPENDED):
        _reach(graph, node)
    return 0


cdef bint _ends_tasks(PyObject *object) noexcept:
    """Whether an object that refers to a task is likely to cancel it: a timeout, a callback, the timers of a loop."""
    cdef const char *name = ur_type_name(object)
    cdef const char *dot = strrchr(name, c'.')
    if PyCFunction_Check(object) or PyMethod_Check(object) or PyCell_Check(object):
        return True
    return ur_is_one_of(name if dot is NULL else dot + 1)
