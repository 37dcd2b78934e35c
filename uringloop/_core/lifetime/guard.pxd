# Declarations of guard.h: the lock that other threads may take, the atomics, and the hooks of compiled types.
from cpython.object cimport PyObject, visitproc, traverseproc


cdef extern from "lifetime/guard.h" nogil:
    ctypedef struct ur_guard:
        pass
    enum: UR_FREE_THREADED
    enum: URINGLOOP_DEBUG
    void ur_guard_init(ur_guard *g)
    void ur_guard_lock(ur_guard *g)
    void ur_guard_unlock(ur_guard *g)
    void *ur_load_ptr(void **p)
    void ur_store_ptr(void **p, void *v)
    int ur_load_int(const int *p)
    int ur_load_flag(const int *p)
    void ur_store_flag(int *p, int v)
    unsigned long ur_load_ulong(const unsigned long *p)
    void ur_store_ulong(unsigned long *p, unsigned long v)
    int ur_take_ulong(unsigned long *p, unsigned long v)
    void ur_store_int(int *p, int v)
    void ur_add_long(long *p, long v)
    long ur_load_long(const long *p)


cdef extern from "lifetime/guard.h":
    traverseproc ur_get_traverse(object type)
    void ur_set_traverse(object type, traverseproc visit)
    void ur_set_dealloc(object type, void (*dealloc)(PyObject *) noexcept)
    void ur_only_core_makes(object type)
    void ur_abstract(object type)
    void ur_python_makes(object type)
    enum: UR_FREE_LISTS
    bint ur_may_reuse(object type) noexcept
    int ur_visit_contents(PyObject *object, visitproc visit, void *arg) noexcept
    int ur_visit_owned(PyObject *object, visitproc visit, void *arg) noexcept
    int ur_add_fast_method(object type, const char *name, void *function, const char *doc) except -1
