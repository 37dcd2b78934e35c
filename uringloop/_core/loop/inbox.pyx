# Inbox: where other threads hand work to a loop. Owns what was handed in until the loop takes it. Wakes the
# loop at most once a sleep, and only when it sleeps. A push that did not raise will run: the loop says that
# it falls asleep under the same guard under which pushes look, and looks at the inbox once more.
from uringloop._core.engine.engine cimport Engine
from uringloop._core.engine.ready cimport ReadyQueue, Runnable, ready_push
from uringloop._core.objects.guard cimport ur_guard_init, ur_guard_lock, ur_guard_unlock, ur_store_flag


cdef class Inbox:
    def __cinit__(self, Engine engine):
        ur_guard_init(&self.guard)
        self.waiting = ReadyQueue()
        self.engine = engine

    def __len__(self):
        return self.waiting.count

    cdef int push(self, Runnable node) except -1:
        """From any thread. Raises RuntimeError once closed; otherwise `node` will run."""
        if not self.try_push(node):
            raise RuntimeError("Event loop is closed")
        return 0

    cdef bint try_push(self, Runnable node) noexcept:
        """From any thread. False: closed, and `node` will not run; otherwise it will."""
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
        """The same for many, with one wake at most; `nodes` is left empty. False: they are as they were."""
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
        # Under the guard: once it is let go, the loop may close and its eventfd's number be another file's.
        if self.asleep and not self.wake_pending:
            self.wake_pending = True
            self.engine.wake()

    cdef void take(self, ReadyQueue ready) noexcept:
        """The loop's thread: move all that was handed in behind what is ready."""
        ur_guard_lock(&self.guard)
        ready.append(self.waiting)
        ur_store_flag(&self.filled, False)
        ur_guard_unlock(&self.guard)

    cdef bint fall_asleep(self) noexcept:
        """The loop's thread, before it waits. False: something was handed in, do not wait."""
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
        """From now on every push raises. What was handed in before stays until the loop takes it."""
        ur_guard_lock(&self.guard)
        self.closed = True
        ur_guard_unlock(&self.guard)
