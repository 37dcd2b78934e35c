# Delivery: a Runnable on its way through a loop that is not ours (asyncio's, uvloop's). Owns it until it runs,
# and tells it when that loop drops it unrun. Our own loops take Runnables as they are, through the inbox.
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
            # A signal handler's. Whether the loop has it can not be known: once more, and the second call does nothing.
            interrupted = True
        except BaseException:
            delivery.node = None
            break
    if interrupted:
        PyErr_SetInterrupt()  # raised again where it does no harm
    return taken


ur_only_core_makes(Delivery)
