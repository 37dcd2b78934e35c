# warn_unclosed: how a destructor reports what the program never closed. Also in the interpreter's last collection, when
# the globals of every module are gone: so it uses the C function that io's own files use, and no global.
from cpython.object cimport PyObject

cdef extern from "Python.h":
    int PyErr_ResourceWarning(PyObject *source, Py_ssize_t stacklevel, const char *format, ...) except -1


cdef inline int warn_unclosed(object source, str message, Py_ssize_t stacklevel) except -1:
    """Raises only the warning itself, where the program has made warnings errors."""
    try:
        PyErr_ResourceWarning(<PyObject *> source, stacklevel, b"%U", <PyObject *> message)
    except Warning:
        raise
    except Exception:
        pass  # the interpreter ends, and has no warnings any more
    return 0
