# Delivery: a Runnable on its way through a loop that is not ours (asyncio's, uvloop's). Owns it until it runs,
# and tells it when that loop drops it unrun. Our own loops take Runnables as they are, through the inbox.
from cpython.exc cimport PyErr_SetInterrupt

from asyncio.events import _get_running_loop as _running_loop

from uringloop._core.ready cimport Runnable


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
    """From any thread. False: the loop is closed, or may not have taken it."""
    cdef Delivery delivery = Delivery.__new__(Delivery)
    delivery.node = node
    delivery.loop = loop
    try:
        if _running_loop() is loop:
            loop.call_soon(delivery)
        else:
            loop.call_soon_threadsafe(delivery)
    except BaseException as error:
        delivery.node = None
        if isinstance(error, KeyboardInterrupt):
            PyErr_SetInterrupt()  # a signal handler's: raised again where it does no harm
        return False
    return True
