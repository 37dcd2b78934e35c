from cpython.object cimport PyObject

ctypedef object (*Call)(PyObject *self, PyObject **args, Py_ssize_t nargs, PyObject *kwnames)
