/* Free lists: keep the memory of dead objects of one class for the next objects of that class.
 *
 * A free list replaces tp_alloc and tp_free of one exact type, so that objects made and dropped
 * once per call or packet never reach the allocator, nor count as allocations for the cyclic collector.
 * Only the GIL protects it, so free-threaded builds have none; nor have debug builds, whose sanitizers and
 * counters must see every birth and death. */
#ifndef URINGLOOP_FREE_LIST_H
#define URINGLOOP_FREE_LIST_H

#include <Python.h>
#include <string.h>

#if defined(Py_GIL_DISABLED) || URINGLOOP_DEBUG
#define UR_FREE_LISTS 0
#else
#define UR_FREE_LISTS 1
#endif
#define UR_FREE_LIST_MAX 1024

/* The canary: whether this is a static type whose objects are one block of a fixed size, preceded only by the collector's
 * header. */
static inline int ur_objects_are_as_known(const PyTypeObject *type) {
    unsigned long other = Py_TPFLAGS_HEAPTYPE;
#ifdef Py_TPFLAGS_MANAGED_DICT
    other |= Py_TPFLAGS_MANAGED_DICT;
#endif
#ifdef Py_TPFLAGS_MANAGED_WEAKREF
    other |= Py_TPFLAGS_MANAGED_WEAKREF;
#endif
#ifdef Py_TPFLAGS_INLINE_VALUES
    other |= Py_TPFLAGS_INLINE_VALUES;
#endif
    return (type->tp_flags & other) == 0 && type->tp_itemsize == 0 && type->tp_basicsize > (Py_ssize_t)sizeof(PyObject);
}

/* Called once for each class. If the call itself fails, for lack of memory, the class gets no free list. */
static inline int ur_may_reuse(PyObject *type) {
    PyObject *canaries, *answer = NULL;
    int may = 0;
    if (!UR_FREE_LISTS) return 0;
    canaries = PyImport_ImportModule("uringloop._core.cpython.canaries");
    if (canaries != NULL)
        answer = PyObject_CallMethod(canaries, "relied_on", "si", "free_lists", ur_objects_are_as_known((PyTypeObject *)type));
    if (answer == NULL) PyErr_WriteUnraisable(type);
    else may = answer == Py_True;
    Py_XDECREF(answer);
    Py_XDECREF(canaries);
    return may;
}

#define UR_DEFINE_FREE_LIST(name)                                                          \
    static PyObject *name##_items[UR_FREE_LIST_MAX];                                       \
    static int name##_count;                                                               \
    static PyTypeObject *name##_type;                                                      \
    static PyObject *name##_alloc(PyTypeObject *type, Py_ssize_t n) {                      \
        PyObject *self;                                                                    \
        if (name##_count == 0 || type != name##_type) return PyType_GenericAlloc(type, n); \
        self = name##_items[--name##_count];                                               \
        memset((char *)self + sizeof(PyObject), 0, (size_t)type->tp_basicsize - sizeof(PyObject)); \
        PyObject_Init(self, type);                                                         \
        PyObject_GC_Track(self);                                                           \
        return self;                                                                       \
    }                                                                                      \
    static void name##_free(void *self) {                                                  \
        if (name##_count < UR_FREE_LIST_MAX && Py_TYPE((PyObject *)self) == name##_type)   \
            name##_items[name##_count++] = (PyObject *)self;                               \
        else                                                                               \
            PyObject_GC_Del(self);                                                         \
    }                                                                                      \
    static void name##_install(PyObject *type) {                                           \
        if (!ur_may_reuse(type)) return;                                                   \
        name##_type = (PyTypeObject *)type;                                                \
        name##_type->tp_alloc = name##_alloc;                                              \
        name##_type->tp_free = name##_free;                                                \
    }

#endif
