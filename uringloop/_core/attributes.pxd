# What an instance of a plain Python class has, read and written as the dictionary it is: a third of the price of asking the
# instance, which first looks through its classes. For attributes that asyncio's constructors always set, of asyncio's own
# classes or ours of the same layout; where a program may have put a property in between, the instance is asked.
# Fetched anew for each operation, so that one whose dictionary was exchanged is no danger.
from cpython.object cimport PyObject

cdef extern from "Python.h":
    object PyObject_GenericGetDict(object instance, void *context)


cdef inline dict attributes_of(object instance):
    return <dict> PyObject_GenericGetDict(instance, NULL)
