/* The context a callback runs in where none was given: a copy of the current one, as asyncio promises.
 *
 * The copy is made late. What would be copied is one reference to an immutable map of the variables, so a pending handle
 * keeps that map, and is lent a context around it while it runs; most callbacks neither keep their context nor ask for
 * it, and then the same one is lent to the next. What the callback set stays with the handle, in the map it gave back: a
 * reader runs again in what it left. A hundred thousand pending callbacks so make no contexts, and the collector, which
 * time and again would look at all of them, sees none.
 *
 * A context leaves its map only where nobody else can have come by it: one reference, no weak one, not entered. If
 * somebody did (asked the handle for it, or a greenlet that left in the middle of the callback still has it), the handle
 * keeps that context, as if it had been copied at once.
 *
 * That takes the layout of a context, which CPython has not changed since 3.7 and does not promise: a canary looks at it
 * once (canaries.py), and where it is another, or there is no GIL to lend under, each handle has its copy from the start. */
#ifndef URINGLOOP_OWN_CONTEXT_H
#define URINGLOOP_OWN_CONTEXT_H

#include <Python.h>
#include <stdint.h>
#include <string.h>

/* What a handle's reference is: a context of the caller's, the handle's own, the map of one to come, one that is lent. */
enum { UR_CONTEXT_GIVEN, UR_CONTEXT_COPIED, UR_CONTEXT_MAP, UR_CONTEXT_LENT };

typedef struct {
    PyObject_HEAD
    PyObject *previous; /* the one it was entered from */
    PyObject *map;
    PyObject *weak_references;
    int entered;
} ur_context;

#ifdef Py_GIL_DISABLED
enum { UR_CONTEXTS_ARE_LATE = 0 };
static inline int ur_contexts_are_as_known(void) { return 0; }
static inline int ur_lend_contexts(void) { return 0; } /* not called */
static inline PyObject *ur_context_around(PyObject *map) { return map; } /* not called */
static inline PyObject *ur_context_borrow(PyObject *map) { return map; } /* not called */
static inline void ur_context_return(PyObject **own, uint8_t *kind) { (void)own; (void)kind; } /* not called */
#else
static int UR_CONTEXTS_ARE_LATE;   /* the layout is what we know, and the switch allows it */
static PyObject *ur_empty_map;     /* a context that lies about must have one: the collector shows it to programs */
static PyObject *ur_spare_context; /* waits to be lent; NULL while it is */

/* The canary: 1 where the layout is what we know, -1 with an exception. */
static inline int ur_contexts_are_as_known(void) {
    PyObject *context = PyContext_New(), *map;
    int as_known = 0;
    if (context == NULL) return -1;
    map = ((ur_context *)context)->map;
    if (Py_TYPE(context)->tp_basicsize == (Py_ssize_t)sizeof(ur_context) &&
        Py_TYPE(context)->tp_weaklistoffset == (Py_ssize_t)offsetof(ur_context, weak_references) && map != NULL &&
        strcmp(Py_TYPE(map)->tp_name, "hamt") == 0 && !((ur_context *)context)->entered) {
        if (PyContext_Enter(context) < 0) { Py_DECREF(context); return -1; }
        as_known = ((ur_context *)context)->entered && PyThreadState_Get()->context == context;
        if (PyContext_Exit(context) < 0) { Py_DECREF(context); return -1; }
        as_known = as_known && !((ur_context *)context)->entered && ((ur_context *)context)->map == map;
    }
    Py_DECREF(context);
    return as_known;
}

/* Once, where the layout is known. */
static inline int ur_lend_contexts(void) {
    PyObject *context = PyContext_New();
    if (context == NULL) return -1;
    ur_empty_map = ((ur_context *)context)->map;
    Py_INCREF(ur_empty_map);
    UR_CONTEXTS_ARE_LATE = 1;
    Py_DECREF(context);
    return 0;
}

/* A context of the map, whose reference it takes over; that is the caller's still where there is no memory. */
static inline PyObject *ur_context_around(PyObject *map) {
    PyObject *context = PyContext_New(), *empty;
    if (context == NULL) return NULL;
    empty = ((ur_context *)context)->map;
    ((ur_context *)context)->map = map;
    Py_XDECREF(empty);
    return context;
}

static inline PyObject *ur_context_borrow(PyObject *map) {
    PyObject *context = ur_spare_context;
    if (context == NULL) return ur_context_around(map);
    ur_spare_context = NULL;
    ((ur_context *)context)->map = map;
    Py_DECREF(ur_empty_map); /* ours is left */
    return context;
}

static inline void ur_context_return(PyObject **own, uint8_t *kind) {
    ur_context *context = (ur_context *)*own;
    if (Py_REFCNT(context) != 1 || context->weak_references != NULL || context->entered) {
        *kind = UR_CONTEXT_COPIED;
        return;
    }
    *own = context->map;
    *kind = UR_CONTEXT_MAP;
    Py_INCREF(ur_empty_map);
    context->map = ur_empty_map;
    if (ur_spare_context == NULL) ur_spare_context = (PyObject *)context;
    else Py_DECREF(context);
}
#endif

static inline PyObject *ur_context_copy(uint8_t *kind) {
    if (UR_CONTEXTS_ARE_LATE) {
        PyObject *current = PyThreadState_Get()->context; /* NULL: nobody has used one in this thread */
        if (current != NULL) {
            PyObject *map = ((ur_context *)current)->map;
            *kind = UR_CONTEXT_MAP;
            Py_INCREF(map);
            return map;
        }
    }
    *kind = UR_CONTEXT_COPIED;
    return PyContext_CopyCurrent();
}

/* What the handle holds is a context while it is entered. One that is entered already raises, as asyncio's do. */
static inline int ur_context_enter(PyObject **own, uint8_t *kind) {
    if (*kind == UR_CONTEXT_MAP) {
        PyObject *context = ur_context_borrow(*own);
        if (context == NULL) return -1;
        *own = context;
        *kind = UR_CONTEXT_LENT;
    }
    return PyContext_Enter(*own);
}

/* A raised exception stays as it is. */
static inline void ur_context_leave(PyObject **own, uint8_t *kind) {
    PyContext_Exit(*own);
    if (*kind == UR_CONTEXT_LENT) ur_context_return(own, kind);
}

/* For somebody who asks: the context is the handle's for good. */
static inline int ur_context_show(PyObject **own, uint8_t *kind) {
    if (*kind == UR_CONTEXT_MAP) {
        PyObject *context = ur_context_around(*own);
        if (context == NULL) return -1;
        *own = context;
        *kind = UR_CONTEXT_COPIED;
    }
    return 0;
}

#endif
