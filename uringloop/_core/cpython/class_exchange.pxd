# Giving an instance another class: `instance.__class__ = wanted`, which on a free-threaded Python stops all threads.
# That takes a millisecond where another loop is in compiled code, and a program that ends just then may hang: a daemon
# thread ends with the lock for it. Without the GIL the class is therefore exchanged in place, after the attributes went
# into a dictionary of their own, as the assignment has it. Only for an instance that no other thread uses yet, and for two
# classes of one layout: a plain subclass with no slots of its own.
cdef extern from *:
    """
    #ifdef Py_GIL_DISABLED
    static int ur_exchange_class(PyObject *instance, PyObject *wanted)
    {
        PyObject *own = PyObject_GenericGetDict(instance, NULL), *copy = own == NULL ? NULL : PyDict_Copy(own);
        PyTypeObject *before = Py_TYPE(instance);
        int failed = copy == NULL || PyObject_SetAttrString(instance, "__dict__", copy) < 0;
        Py_XDECREF(own);
        Py_XDECREF(copy);
        if (failed) return -1;
        Py_INCREF(wanted);
        Py_SET_TYPE(instance, (PyTypeObject *) wanted);
        Py_DECREF(before);
        return 0;
    }
    #else
    static int ur_exchange_class(PyObject *instance, PyObject *wanted)
    {
        return PyObject_SetAttrString(instance, "__class__", wanted);
    }
    #endif
    """
    int exchange_class "ur_exchange_class"(object instance, object wanted) except -1
