/* The context of a callback for which the caller gave none: a copy of the current one, as asyncio promises.
 *
 * The copy is made late. A copy would be one reference to an immutable map of the variables, so a pending handle keeps
 * only that map, and borrows a context around it while its callback runs. Most callbacks neither keep their context nor
 * ask for it, and then the next handle borrows the same one. The variables that the callback set stay in the handle's map,
 * so a reader's next run sees them. This way a hundred thousand pending callbacks make no contexts, which the collector
 * would otherwise look at again and again.
 *
 * A handle takes the map out of the context again only if no other code can have got that context: it has one reference,
 * no weak reference, and is not entered. If other code has (the program asked the handle for it, or a greenlet that left
 * in the middle of the callback still has it), the handle keeps that context, as if it had been copied at once.
 *
 * This depends on the layout of a context, which CPython has not changed since 3.7 but does not promise. A canary checks
 * it once (canaries.py). If it differs, and without the GIL, each handle has its copy from the start. */
#ifndef URINGLOOP_OWN_CONTEXT_H
#define URINGLOOP_OWN_CONTEXT_H

#include <Python.h>
#include <stdint.h>
#include <string.h>

/* What a handle's reference is: the caller's context, the handle's own, the map for a later one, or a borrowed one. */
enum { UR_CONTEXT_GIVEN, UR_CONTEXT_COPIED, UR_CONTEXT_MAP, UR_CONTEXT_LENT };

typedef struct {
    PyObject_HEAD
    PyObject *previous; /* the context from which this one was entered */
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
static int UR_CONTEXTS_ARE_LATE;   /* the layout is the known one, and the switch allows it */
static PyObject *ur_empty_map;     /* for the spare context, which must have a map: programs can find it by the collector */
static PyObject *ur_spare_context; /* the context to lend; NULL while it is lent */

/* The canary: 1 if the layout is the known one, -1 with an exception. */
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

/* Called once, if the layout is the known one. */
static inline int ur_lend_contexts(void) {
    PyObject *context = PyContext_New();
    if (context == NULL) return -1;
    ur_empty_map = ((ur_context *)context)->map;
    Py_INCREF(ur_empty_map);
    UR_CONTEXTS_ARE_LATE = 1;
    Py_DECREF(context);
    return 0;
}

/* Makes a context with this map, and takes over the reference to the map, except if there is no memory. */
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
    Py_DECREF(ur_empty_map); /* not the last reference: the variable has one */
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
        PyObject *current = PyThreadState_Get()->context; /* NULL: this thread has not used one yet */
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

/* While it is entered, the handle holds a context. Raises if that is entered already, as asyncio's handles do. */
static inline int ur_context_enter(PyObject **own, uint8_t *kind) {
    if (*kind == UR_CONTEXT_MAP) {
        PyObject *context = ur_context_borrow(*own);
        if (context == NULL) return -1;
        *own = context;
        *kind = UR_CONTEXT_LENT;
    }
    return PyContext_Enter(*own);
}

/* Leaves a raised exception as it is. */
static inline void ur_context_leave(PyObject **own, uint8_t *kind) {
    PyContext_Exit(*own);
    if (*kind == UR_CONTEXT_LENT) ur_context_return(own, kind);
}

/* The program asks for the context: from now on the handle keeps its own. */
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
