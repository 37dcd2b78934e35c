/* The protocol by which a compiled class describes its coroutines to coroutine.pyx, and the fastest way for an iterator to
 * return a value. */
#ifndef URINGLOOP_COROUTINE_H
#define URINGLOOP_COROUTINE_H

#include <Python.h>

typedef struct {
    PyAsyncMethods slots; /* first: tp_as_async of the class, and of the classes that derive from it, points here */
    Py_ssize_t phase;     /* the offset of the CoroutinePhase in an object, one byte */
    int (*step)(PyObject *self, PyObject *value, PyObject **result); /* a PySendResult; the caller owns the result */
    int (*stop)(PyObject *self);                                     /* ends it in any phase; -1: raised */
} ur_coroutine;

/* Return a coroutine's value as its iterator does, by StopIteration. The exception is made here for a tuple or an exception
 * as value, which PyErr_SetObject would unpack; None needs no exception at all. Takes over the reference to `value`. */
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

/* Cython's own __next__ adds a traceback entry to StopIteration, which costs more than all the rest. */
static inline void ur_set_iternext(PyObject *type, iternextfunc next) {
    ((PyTypeObject *)type)->tp_iter = PyObject_SelfIter;
    ((PyTypeObject *)type)->tp_iternext = next;
    PyType_Modified((PyTypeObject *)type);
}

#endif
