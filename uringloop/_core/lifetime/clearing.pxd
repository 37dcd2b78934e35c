# What an object gives back before the collector empties it. Cython's own tp_clear puts None into the fields and releases
# no Py_buffer: the object's end, or a queue that still has the object, would find nothing to give back, or use None as
# what was there. For one class of a module: what has the static function is that module.
from cpython.object cimport PyObject

cdef extern from *:
    """
    static void (*ur_before_clear)(PyObject *);
    static int (*ur_clear_fields)(PyObject *);
    static inline int ur_clear(PyObject *self) {
        ur_before_clear(self);
        return ur_clear_fields(self);
    }
    static inline void ur_call_before_clear(PyObject *type, void (*function)(PyObject *)) {
        ur_before_clear = function;
        ur_clear_fields = ((PyTypeObject *)type)->tp_clear;
        ((PyTypeObject *)type)->tp_clear = ur_clear;
    }
    """
    void call_before_clear "ur_call_before_clear"(object type, void (*function)(PyObject *self) noexcept)
