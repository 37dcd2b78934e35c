# Queue, LifoQueue and PriorityQueue. A queue owns its items and two lines: waiters for an item, and waiters for
# room. Both lines grant permits: a waiter with a permit takes its item, or puts it, when it runs. So a waiter
# that is cancelled after the grant loses nothing: another waiter gets the permit, and the item is still in the store.
import _thread
import asyncio
import math
import sys
import types
from collections import deque

from uringloop._core.lifetime.guard cimport ur_load_int, ur_store_int
from uringloop._core.handoff.thread_wait cimport TIMED_OUT, block, not_in_a_loop
from uringloop._core.handoff.wait cimport make_wait
from uringloop._core.handoff.waitlist cimport Waitlist, take
from uringloop.sync.described cimport named, title
from uringloop.sync.wait_group cimport WaitGroup

from uringloop.errors import NotInitialised, QueueShutDown


cdef class Store:
    """The items, first in, first out. Each method is atomic."""

    def __init__(self):
        items = deque()
        self.put_item, self.get_item = items.append, items.popleft

    cdef object get(self):
        return self.get_item()

    cdef int put(self, object item) except -1:
        self.put_item(item)
        return 0

    cdef int clear(self) except -1:
        """Remove any one item."""
        self.get_item()
        return 0


cdef class Stack(Store):
    def __init__(self):
        items = []
        self.put_item, self.get_item = items.append, items.pop


cdef class Heap(Store):
    """The items, the least first. Comparing items runs their code, which may raise. So each method does all comparisons
    before it moves an item: it either succeeds or changes nothing. (heapq's functions may keep or lose an item.)"""

    def __init__(self):
        self.items = []
        self.order = _thread.RLock()

    cdef object get(self):
        cdef list items = self.items
        cdef list way = []
        cdef Py_ssize_t count, place = 0, child
        cdef object last, least
        with self.order:
            self.begin()
            try:
                count = len(items) - 1  # how many items stay
                assert count >= 0, "a permit without an item"
                last = items[count]
                while 2 * place + 1 < count:
                    child = 2 * place + 1
                    if child + 1 < count and items[child + 1] < items[child]:
                        child += 1
                    if not (items[child] < last):
                        break
                    way.append(child)
                    place = child
                least = items[0]
                place = 0
                for child in way:
                    items[place] = items[child]
                    place = child
                items[place] = last
                items.pop()
            finally:
                self.comparing = False
        return least

    cdef int put(self, object item) except -1:
        cdef list items = self.items
        cdef list way = []
        cdef Py_ssize_t place, parent
        with self.order:
            self.begin()
            try:
                place = len(items)
                while place:
                    parent = (place - 1) // 2
                    if not (item < items[parent]):
                        break
                    way.append(parent)
                    place = parent
                place = len(items)
                items.append(item)
                for parent in way:
                    items[place] = items[parent]
                    place = parent
                items[place] = item
            finally:
                self.comparing = False
        return 0

    cdef int clear(self) except -1:
        with self.order:
            self.begin()
            item = self.items.pop()
            self.comparing = False
        return 0  # and the item dies, now that the lock is free again

    cdef int begin(self) except -1:
        # The same thread can acquire `order` twice: if it does, a comparison's code has called this queue.
        if self.comparing:
            raise RuntimeError("comparing the items of a PriorityQueue must not use the queue")
        self.comparing = True
        return 0


cdef class Permits(Waitlist):
    """Counts permits as Semaphore does: a permit that is added while a waiter is in line is never free."""

    cdef bint try_acquire(self) noexcept:
        if self.free == 0:
            return False
        self.free -= 1
        return True

    cdef bint put_back(self) noexcept:
        self.free += 1
        return True


cdef class Items(Permits):
    """The line of those that get. A permit is an item in the store, reserved for its owner."""

    cdef str wait_name(self):
        return "Queue.get"

    cdef object collect(self, object value):
        try:
            item = self.store.get()
        except BaseException:  # comparing items raised, and all items are where they were
            self.hand_on()
            raise
        if self.room is not None:
            self.room.hand_on()
        return item

    cdef int discard(self) except -1:
        while take(self):
            self.store.clear()
            if self.room is not None:
                self.room.hand_on()
            self.unfinished.drop()
        return 0

    def __repr__(self):
        return f"<Items free={self.free} waiting={self.waiting}>"


cdef class Room(Permits):
    """The line of those that put. A permit is a free place in the store, reserved for its owner."""

    cdef bint try_acquire(self) noexcept:
        if self.refusal is not None:
            return False
        return self.unlimited or Permits.try_acquire(self)

    cdef str wait_name(self):
        return "Queue.put"

    cdef object collect(self, object value):
        self.items.unfinished.add(1)  # first: once the item is in the store, a task may get it and call task_done()
        try:
            self.store.put(value)
        except BaseException:  # comparing items raised, and the item was not put
            self.items.unfinished.drop()
            if not self.unlimited:
                self.hand_on()
            raise
        self.items.hand_on()
        if ur_load_int(&self.items.discarding):
            self.items.discard()  # a shutdown ran in between, and did not see the item

    def __repr__(self):
        return f"<Room {'unlimited' if self.unlimited else f'free={self.free}'} waiting={self.waiting}>"


cdef class Queue:
    """asyncio.Queue for tasks of any loop; plain threads use the methods that end in _sync."""

    def __cinit__(self, *args, **options):
        # For a subclass that forgets __init__: there is no item and no room, and each method raises NotInitialised.
        self.items, self.room, self.unfinished = Items(), Room(), WaitGroup()
        self.items.unfinished = self.unfinished
        self.room.items = self.items
        self.items.refusal = self.room.refusal = NotInitialised

    def __init__(self, maxsize=0, *, str name=None):
        cdef Store store = self.new_store()
        cdef bint unlimited = maxsize <= 0 or not maxsize < sys.maxsize
        cdef Py_ssize_t free = 0 if unlimited else math.ceil(maxsize)
        if self.items.store is not None:
            # __init__ runs twice, for example because two base classes call it. Other threads may use the queue already.
            if maxsize != self.maxsize:
                raise RuntimeError(f"{type(self).__name__}.__init__() was called already, with another maxsize")
            return
        self.maxsize = maxsize
        self.items.name = self.room.name = self.unfinished.name = name
        self.items.store = self.room.store = store
        self.room.unlimited = unlimited
        if not unlimited:
            self.room.free = free
            self.items.room = self.room  # a reference cycle, which a queue without a limit does not need
        if self.items.refusal is NotInitialised:  # otherwise the queue was shut down before
            self.items.refusal = self.room.refusal = None

    cdef Store new_store(self):
        return Store()

    __class_getitem__ = classmethod(types.GenericAlias)

    def put(self, item):
        """Await the result to put the item: at once, or when there is room."""
        return make_wait(self.room, item)

    def get(self):
        """Await the result to get an item: at once, or when there is one."""
        return make_wait(self.items, None)

    def put_nowait(self, item):
        """Put the item, from any thread; raises QueueFull if there is no room."""
        self.nowait(self.room, item, asyncio.QueueFull)

    def get_nowait(self):
        """Get an item, from any thread; raises QueueEmpty if there is none."""
        return self.nowait(self.items, None, asyncio.QueueEmpty)

    cdef object nowait(self, Permits line, object value, object error):
        if not take(line):
            raise error if line.refusal is None else line.refusal
        return line.collect(value)

    def put_sync(self, item, timeout=None):
        """Put the item from a plain thread; raises TimeoutError after `timeout` seconds without room."""
        not_in_a_loop("Queue.put_sync()", "`await queue.put()`")
        if block(self.room, item, timeout) is TIMED_OUT:
            raise TimeoutError("no room in the queue")

    def get_sync(self, timeout=None):
        """Get an item in a plain thread; raises TimeoutError after `timeout` seconds without one."""
        not_in_a_loop("Queue.get_sync()", "`await queue.get()`")
        item = block(self.items, None, timeout)
        if item is TIMED_OUT:
            raise TimeoutError("no item in the queue")
        return item

    def task_done(self):
        """Report that one item from get() has been processed."""
        if not self.unfinished.drop():
            raise ValueError("task_done() called too many times")

    def join(self):
        """Await the result until all items that were put have been processed."""
        return self.unfinished.wait()

    def join_sync(self, timeout=None):
        """join in a plain thread: True once all are processed, False after `timeout` seconds."""
        not_in_a_loop("Queue.join_sync()", "`await queue.join()`")
        return block(self.unfinished, None, timeout) is not TIMED_OUT

    def shutdown(self, bint immediate=False):
        """Accept no more items: put raises QueueShutDown, and so does get once no item is left. If `immediate`,
        discard the items that are left, as if each had been taken and processed."""
        if immediate:
            ur_store_int(&self.items.discarding, True)
        self.room.close_line(QueueShutDown)
        self.items.close_line(QueueShutDown)
        if immediate:
            self.items.discard()

    def qsize(self):
        """The number of items that are not reserved for a waiter."""
        return self.items.free

    def empty(self):
        return self.items.free == 0

    def full(self):
        """Whether all room is taken by items or reserved for waiters."""
        return not self.room.unlimited and self.room.free == 0

    def statistics(self):
        """{size, unfinished: now; get, put: the counts of the two lines}."""
        return {"size": self.items.free, "unfinished": self.unfinished.count,
                "get": named(self.items, {}), "put": named(self.room, {})}

    def __repr__(self):
        return (f"<{title(self, self.items.name)} size={self.items.free} maxsize={self.maxsize} "
                f"getters={self.items.waiting} putters={self.room.waiting}>")


cdef class LifoQueue(Queue):
    """A Queue whose get returns the newest item first."""

    cdef Store new_store(self):
        return Stack()


cdef class PriorityQueue(Queue):
    """A Queue whose get returns the least item first. Comparing items must not use the queue."""

    cdef Store new_store(self):
        return Heap()
