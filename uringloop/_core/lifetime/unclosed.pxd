# warn_unclosed: the warning by which a destructor reports an object that the program never closed. It must also work in the
# interpreter's last collection, when the globals of all modules are gone: so it calls the C function that io's own files
# call, and uses no global.
from cpython.object cimport PyObject

cdef extern from "Python.h":
    int PyErr_ResourceWarning(PyObject *source, Py_ssize_t stacklevel, const char *format, ...) except -1


cdef inline int warn_unclosed(object source, str message, Py_ssize_t stacklevel) except -1:
    """Emit a ResourceWarning. Raises only the warning itself, if the program has made warnings errors."""
    try:
        PyErr_ResourceWarning(<PyObject *> source, stacklevel, b"%U", <PyObject *> message)
    except Warning:
        raise
    except Exception:
        pass  # the interpreter is ending, and its warnings module is gone
    return 0
