/* What a compiled class says of its coroutines (coroutine.pyx makes them what tasks and `await` expect), and what an
 * iterator returns in the shortest way. */
#ifndef URINGLOOP_COROUTINE_H
#define URINGLOOP_COROUTINE_H

#include <Python.h>

typedef struct {
    PyAsyncMethods slots; /* first: tp_as_async of the class, and of those that derive from it, points here */
    Py_ssize_t phase;     /* where in an object its CoroutinePhase is, one byte */
    int (*step)(PyObject *self, PyObject *value, PyObject **result); /* a PySendResult; the result is the caller's */
    int (*stop)(PyObject *self);                                     /* ends it, wherever it is; -1: raised */
} ur_coroutine;

/* What a coroutine returns, as its iterator does: an exception. A tuple or an exception would be taken apart, and None
 * need not be said at all. Steals. */
static inline PyObject *ur_stop(PyObject *value) {
    PyObject *stop;
    if (PyTuple_Check(value) || PyExceptionInstance_Check(value)) {
        stop = PyObject_CallOneArg(PyExc_StopIteration, value);
        if (stop != NULL) {
            PyErr_SetObject(PyExc_StopIteration, stop);
            Py_DECREF(stop);
        }
    } else if (value != Py_None) {
        PyErr_SetObject(PyExc_StopIteration, value);
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

#endif
