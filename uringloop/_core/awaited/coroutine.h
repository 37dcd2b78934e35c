/* What a coroutine returns, as its iterator does: an exception, in the shortest way. A tuple or an exception
 * would be taken apart, and None need not be said at all. */
#ifndef URINGLOOP_COROUTINE_H
#define URINGLOOP_COROUTINE_H

#include <Python.h>

static inline int ur_return_value(PyObject *value) {
    PyObject *stop;
    if (!PyTuple_Check(value) && !PyExceptionInstance_Check(value)) {
        PyErr_SetObject(PyExc_StopIteration, value);
        return -1;
    }
    stop = PyObject_CallOneArg(PyExc_StopIteration, value);
    if (stop != NULL) {
        PyErr_SetObject(PyExc_StopIteration, stop);
        Py_DECREF(stop);
    }
    return -1;
}

/* am_send is how a task and `await` resume a coroutine when the type has it: the result comes as a value, not as an
 * exception with a traceback. Cython has no name for the slot. */
typedef PySendResult (*ur_send_function)(PyObject *self, PyObject *value, PyObject **result);

static inline void ur_set_send(PyObject *type, void *function) {
    ((PyTypeObject *)type)->tp_as_async->am_send = (ur_send_function)function;
}

#endif
