# What an instance of a plain Python class has, read and written as the dictionary it is: half the price of asking the
# instance, which looks through its classes first. Only for the attributes that the constructors of asyncio's own classes
# set, and of instances whose class is such a one or stands for it; a subclass may have made a property of them.
# The dictionary is fetched anew for each operation, so that exchanging an instance's is no danger.
cdef extern from "Python.h":
    object PyObject_GenericGetDict(object instance, void *context)


cdef inline dict attributes_of(object instance):
    return <dict> PyObject_GenericGetDict(instance, NULL)
