# Delivery: carries a Runnable through a loop that is not ours (asyncio's, uvloop's). It owns the Runnable until that
# runs, and calls its `dropped` if the loop drops it unrun. Our own loops take Runnables directly, through the inbox.
from cpython.exc cimport PyErr_SetInterrupt

from asyncio.events import _get_running_loop as _running_loop

from uringloop._core.engine.ready_queue cimport Runnable
from uringloop._core.lifetime.guard cimport ur_only_core_makes


cdef class Delivery:
    cdef Runnable node
    cdef object loop

    def __call__(self):
        cdef Runnable node = self.node
        self.node = None
        if node is not None:
            node.run(self.loop)

    def __del__(self):
        if self.node is not None:
            self.node.dropped()


cdef bint deliver_foreign(Runnable node, object loop) except -1:
    """From any thread. False: the loop is closed."""
    cdef Delivery delivery = Delivery.__new__(Delivery)
    cdef bint interrupted = False, taken = False
    delivery.node = node
    delivery.loop = loop
    while not taken:
        try:
            if _running_loop() is loop:
                loop.call_soon(delivery)
            else:
                loop.call_soon_threadsafe(delivery)
            taken = True
        except KeyboardInterrupt:
            # A signal handler raised this, and we cannot know whether the loop has the delivery. So we schedule it once
            # more; if the loop calls it twice, the second call does nothing.
            interrupted = True
        except BaseException:
            delivery.node = None
            break
    if interrupted:
        PyErr_SetInterrupt()  # raise the interrupt again later, where it does no harm
    return taken


ur_only_core_makes(Delivery)
