from cpython.object cimport PyObject

cdef extern from *:
    """
    /* What an iterator's end looks like to `await`: nothing raised is None, which costs nothing. Steals. */
    static inline PyObject *ur_stop(PyObject *value) {
        if (value != Py_None) {
            PyObject *stop = PyObject_CallOneArg(PyExc_StopIteration, value);
            if (stop != NULL) {
                PyErr_SetObject(PyExc_StopIteration, stop);
                Py_DECREF(stop);
            }
        }
        Py_DECREF(value);
        return NULL;
    }

    /* Cython's own __next__ would spend more on a traceback entry for StopIteration than all the rest costs. */
    static inline void ur_set_iternext(PyObject *type, iternextfunc next) {
        ((PyTypeObject *)type)->tp_iter = PyObject_SelfIter;
        ((PyTypeObject *)type)->tp_iternext = next;
        PyType_Modified((PyTypeObject *)type);
    }
    """
    ctypedef PyObject *(*iternextfunc)(PyObject *) noexcept
    PyObject *ur_stop(PyObject *value) noexcept
    void ur_set_iternext(object type, iternextfunc next) noexcept


cdef class ReadyAwaitable:
    cdef object value      # never changes


cdef ReadyAwaitable READY_NONE     # awaiting it gives None
cdef object ready_awaitable(object value)
cdef object thrown(object kind, object value, object traceback)
