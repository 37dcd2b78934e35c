# call_before_clear: calls a function of a class before the collector empties an object, which can then still give back what
# it holds. Cython's own tp_clear puts None into the fields and releases no Py_buffer: afterwards the destructor, or a queue
# that still holds the object, would find nothing to give back, or use None as the field's object. Only one class of a
# module can use this, because the module has only one copy of the static variables.
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
