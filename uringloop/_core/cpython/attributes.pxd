# attributes_of: the dictionary of a plain Python object's attributes. Reading it costs half as much as getattr, which looks
# through the object's classes first. Only for attributes that the constructors of asyncio's own classes set, and only for
# objects of exactly such a class, or of one that stands for it: a subclass may have made a property of an attribute.
# Callers fetch the dictionary anew for each operation, because a program may replace it.
cdef extern from "Python.h":
    object PyObject_GenericGetDict(object instance, void *context)


cdef inline dict attributes_of(object instance):
    return <dict> PyObject_GenericGetDict(instance, NULL)
