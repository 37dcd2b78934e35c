/* The internal lock that other threads may take (always called "guard"), and atomics for the few fields
 * that threads read without it.
 *
 * With the GIL, no other thread runs between two lines of compiled code that does not release it. So the GIL
 * is the guard, and a lock would only cost two atomics per hand-in. Free-threaded, the guard is a PyMutex. */
#ifndef URINGLOOP_GUARD_H
#define URINGLOOP_GUARD_H

#include <Python.h>

#ifdef Py_GIL_DISABLED
typedef PyMutex ur_guard;
#define ur_guard_init(g) memset((g), 0, sizeof(ur_guard))
#define ur_guard_lock(g) PyMutex_Lock(g)
#define ur_guard_unlock(g) PyMutex_Unlock(g)
#define UR_FREE_THREADED 1
#else
typedef char ur_guard;
#define ur_guard_init(g) ((void)(g))
#define ur_guard_lock(g) ((void)(g))
#define ur_guard_unlock(g) ((void)(g))
#define UR_FREE_THREADED 0
#endif

static inline void *ur_load_ptr(void *const *p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }
static inline void ur_store_ptr(void **p, void *v) { __atomic_store_n(p, v, __ATOMIC_RELEASE); }
static inline int ur_load_int(const int *p) { return __atomic_load_n(p, __ATOMIC_SEQ_CST); }
static inline void ur_store_int(int *p, int v) { __atomic_store_n(p, v, __ATOMIC_SEQ_CST); }
/* For one writer under a guard and readers without it: plain loads and stores on most machines, and no data race. */
static inline int ur_load_flag(const int *p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }
static inline void ur_store_flag(int *p, int v) { __atomic_store_n(p, v, __ATOMIC_RELEASE); }
static inline unsigned long ur_load_ulong(const unsigned long *p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }
static inline void ur_store_ulong(unsigned long *p, unsigned long v) { __atomic_store_n(p, v, __ATOMIC_RELEASE); }
static inline int ur_take_ulong(unsigned long *p, unsigned long v) { /* changes 0 to v; false if it was not 0 */
    unsigned long none = 0;
    return __atomic_compare_exchange_n(p, &none, v, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}
static inline void ur_add_long(long *p, long v) { __atomic_add_fetch(p, v, __ATOMIC_RELAXED); }
static inline long ur_load_long(const long *p) { return __atomic_load_n(p, __ATOMIC_RELAXED); }

#include "cpython/free_list.h"

/* For the tp_traverse of an owner of handles, which the collector does not track (handle.pyx says why): shows the
 * collector what the handle refers to, if the owner has the only reference to the handle. (If there are more, a living
 * object may reach it.) Shows all other objects as usual. */
static inline int ur_visit_owned(PyObject *object, visitproc visit, void *arg) {
    if (PyObject_IS_GC(object)) return visit(object, arg);
    if (Py_REFCNT(object) == 1 && Py_TYPE(object)->tp_traverse != NULL)
        return Py_TYPE(object)->tp_traverse(object, visit, arg);
    return 0;
}
/* The same, no matter how many references the handle has: for an owner whose finalizer empties the handle. */
static inline int ur_visit_contents(PyObject *handle, visitproc visit, void *arg) {
    return Py_TYPE(handle)->tp_traverse(handle, visit, arg);
}

/* Compiled classes that own raw arrays or lists of objects extend Cython's tp_traverse. */
static inline traverseproc ur_get_traverse(PyObject *type) { return ((PyTypeObject *)type)->tp_traverse; }
static inline void ur_set_dealloc(PyObject *type, destructor dealloc) { ((PyTypeObject *)type)->tp_dealloc = dealloc; }
static inline void ur_set_traverse(PyObject *type, traverseproc visit) { ((PyTypeObject *)type)->tp_traverse = visit; }

/* Python can make an object of any class, also through a subclass that forgets __init__, without the parts that compiled
 * code relies on. That code does not check its fields, so the following three prevent such objects. They change only the
 * type: making an object costs the core nothing more. */

static inline void ur_hide_new(PyTypeObject *type) {
    type->tp_flags &= ~Py_TPFLAGS_BASETYPE; /* Python checks this, but compiled subclasses in other modules don't */
    type->tp_vectorcall = NULL; /* by which Cython bypasses tp_new */
    if (PyDict_DelItemString(type->tp_dict, "__new__") < 0) PyErr_Clear();
    PyType_Modified(type);
}

/* A subclass of a class that ur_abstract changed inherits that tp_alloc: undo it. A free list sets both tp_alloc and
 * tp_free, so its class is left alone. */
static inline void ur_allocate(PyTypeObject *type) {
    if (type->tp_free == PyObject_GC_Del || type->tp_free == PyObject_Free) type->tp_alloc = PyType_GenericAlloc;
}

/* Only its own module makes objects of this class, by Class.__new__(Class), which Cython compiles to a direct call.
 * No compiled class of another module may derive from it. */
static inline void ur_only_core_makes(PyObject *class) {
    PyTypeObject *type = (PyTypeObject *)class;
    ur_hide_new(type);
    ur_allocate(type);
    type->tp_new = NULL;
}

static PyObject *ur_refuse_alloc(PyTypeObject *type, Py_ssize_t Py_UNUSED(items)) {
    return PyErr_Format(PyExc_TypeError, "cannot create '%.200s' instances", type->tp_name);
}

/* Only compiled classes that derive from this class have objects; each of them must call ur_only_core_makes or
 * ur_python_makes. */
static inline void ur_abstract(PyObject *class) {
    PyTypeObject *type = (PyTypeObject *)class;
    ur_hide_new(type);
    type->tp_alloc = ur_refuse_alloc;
}

/* Python makes objects of this class, whose base is abstract, but derives no class from it. */
static inline void ur_python_makes(PyObject *class) {
    PyTypeObject *type = (PyTypeObject *)class;
    type->tp_flags &= ~Py_TPFLAGS_BASETYPE;
    ur_allocate(type);
    PyType_Modified(type);
}

/* Adds a METH_FASTCALL|METH_KEYWORDS method to a compiled class. It gets the caller's own argument array, no tuple
 * and no dict, and LOAD_METHOD/PyObject_VectorcallMethod make no bound method. */
static inline int ur_add_fast_method(PyObject *type, const char *name, void *function, const char *doc) {
    PyMethodDef *def = (PyMethodDef *)PyMem_Calloc(1, sizeof(PyMethodDef)); /* never freed: it lives as long as the type */
    PyObject *descr;
    int ret;
    if (def == NULL) { PyErr_NoMemory(); return -1; }
    def->ml_name = name;
    def->ml_meth = (PyCFunction)function;
    def->ml_flags = METH_FASTCALL | METH_KEYWORDS;
    def->ml_doc = doc;
    descr = PyDescr_NewMethod((PyTypeObject *)type, def);
    if (descr == NULL) return -1;
    ret = PyDict_SetItemString(((PyTypeObject *)type)->tp_dict, name, descr);
    Py_DECREF(descr);
    PyType_Modified((PyTypeObject *)type);
    return ret;
}

#endif
