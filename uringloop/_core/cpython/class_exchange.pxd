# exchange_class: gives an instance another class, like `instance.__class__ = wanted`. On a free-threaded Python that
# assignment stops all threads. It takes a millisecond if another loop is in compiled code, and a program that ends just
# then may hang, because a daemon thread ends while it holds the lock. So without the GIL this sets the class in place,
# after it has moved the attributes into a dictionary of their own, as the assignment does. Only for an instance that no
# other thread uses yet, and for two classes of one layout: a plain subclass without slots of its own.
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
