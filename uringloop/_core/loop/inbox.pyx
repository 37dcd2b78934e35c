# Inbox: the queue through which other threads submit work to a loop. Owns the work until the loop takes it. Wakes the
# loop only when it sleeps, and at most once per sleep. Work whose push did not raise will run: before the loop falls
# asleep, it sets `asleep` under the guard that pushes take, and checks the inbox once more.
from uringloop._core.engine.engine cimport Engine
from uringloop._core.engine.ready_queue cimport ReadyQueue, Runnable, ready_push
from uringloop._core.lifetime.guard cimport ur_guard_init, ur_guard_lock, ur_guard_unlock, ur_store_flag


cdef class Inbox:
    def __cinit__(self, Engine engine):
        ur_guard_init(&self.guard)
        self.waiting = ReadyQueue()
        self.engine = engine

    def __len__(self):
        return self.waiting.count

    cdef int push(self, Runnable node) except -1:
        """Submit `node`, which will run; called from any thread. Raises RuntimeError once closed."""
        if not self.try_push(node):
            raise RuntimeError("Event loop is closed")
        return 0

    cdef bint try_push(self, Runnable node) noexcept:
        """Submit `node`, which will run; called from any thread. Return False, and do nothing, once closed."""
        ur_guard_lock(&self.guard)
        if self.closed:
            ur_guard_unlock(&self.guard)
            return False
        ready_push(self.waiting, node)
        ur_store_flag(&self.filled, True)
        self.wake()
        ur_guard_unlock(&self.guard)
        return True

    cdef bint try_push_all(self, ReadyQueue nodes) noexcept:
        """The same for many nodes, with at most one wake; leaves `nodes` empty. Return False, and do nothing, once closed."""
        ur_guard_lock(&self.guard)
        if self.closed:
            ur_guard_unlock(&self.guard)
            return False
        self.waiting.append(nodes)
        ur_store_flag(&self.filled, self.waiting.count != 0)
        self.wake()
        ur_guard_unlock(&self.guard)
        return True

    cdef void wake(self) noexcept:
        # Under the guard: once it is released, the loop may close, and another file may get its eventfd's number.
        if self.asleep and not self.wake_pending:
            self.wake_pending = True
            self.engine.wake()

    cdef void take(self, ReadyQueue ready) noexcept:
        """Append all submitted work to the ready queue; called by the loop's thread."""
        ur_guard_lock(&self.guard)
        ready.append(self.waiting)
        ur_store_flag(&self.filled, False)
        ur_guard_unlock(&self.guard)

    cdef bint fall_asleep(self) noexcept:
        """The loop's thread calls this before it waits. Return False if work was submitted, and the loop must not wait."""
        cdef bint empty
        ur_guard_lock(&self.guard)
        empty = self.waiting.count == 0
        ur_store_flag(&self.asleep, empty)
        ur_guard_unlock(&self.guard)
        return empty

    cdef void woke_up(self) noexcept:
        ur_guard_lock(&self.guard)
        ur_store_flag(&self.asleep, False)
        self.wake_pending = False
        ur_guard_unlock(&self.guard)

    cdef void close(self) noexcept:
        """Refuse all further work. Work submitted before stays until the loop takes it."""
        ur_guard_lock(&self.guard)
        self.closed = True
        ur_guard_unlock(&self.guard)
