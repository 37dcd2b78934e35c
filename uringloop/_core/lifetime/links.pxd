# show_links: shows the garbage collector the objects in a linked list that a compiled class owns. Cython does not know of raw
# links. `head` and `next` are the addresses of these two fields in imagined objects at the class's own address, which give
# the offsets. Only one class of a module can use this, because the module has only one copy of the static variables.
from cpython.object cimport PyObject

cdef extern from *:
    """
    #include "lifetime/guard.h"

    static traverseproc ur_traverse_fields;
    static Py_ssize_t ur_head_offset, ur_next_offset;

    static int ur_traverse_links(PyObject *self, visitproc visit, void *arg) {
        PyObject *node = *(PyObject **)((char *)self + ur_head_offset);
        int result;
        while (node != NULL) {
            if ((result = ur_visit_owned(node, visit, arg)) != 0) return result;
            node = *(PyObject **)((char *)node + ur_next_offset);
        }
        return ur_traverse_fields(self, visit, arg);
    }

    static inline void ur_show_links(PyObject *type, PyObject **head, PyObject **next) {
        ur_head_offset = (char *)head - (char *)type;
        ur_next_offset = (char *)next - (char *)type;
        ur_traverse_fields = ur_get_traverse(type);
        ur_set_traverse(type, ur_traverse_links);
    }
    """
    void show_links "ur_show_links"(object type, PyObject **head, PyObject **next)
