/* The copy of the current context that a callback runs in, as asyncio promises, where none was given.
 *
 * As long as the handle alone knows of it, such a copy is hidden from the cyclic collector once there are many of
 * them: a hundred thousand pending callbacks made the collector look at as many contexts, all of them alive, time
 * and again, which took half of the time. Nothing is lost by it: a handle's owner shows what the handle refers to
 * (guard.h), and so what is behind a hidden copy. Whoever asks for the copy is given one that is tracked again, and
 * so is one that is let go of: its own end expects it, or somebody has come by it while it was entered.
 *
 * The few copies of a loop that runs each callback soon stay as they are: hiding and showing costs two calls. */
#ifndef URINGLOOP_OWN_CONTEXT_H
#define URINGLOOP_OWN_CONTEXT_H

#include <Python.h>
#include <stdint.h>

enum { UR_CONTEXT_GIVEN, UR_CONTEXT_COPIED, UR_CONTEXT_HIDDEN }; /* what a handle says of its context */

#ifndef Py_GIL_DISABLED
enum { UR_MANY_COPIES = 1024 }; /* a collection is due after 700 to 2000 new objects */
static Py_ssize_t ur_copies; /* alive, in all loops */
#endif

static inline PyObject *ur_context_copy(uint8_t *kind) {
    PyObject *context = PyContext_CopyCurrent();
    if (context == NULL) return NULL;
#ifdef Py_GIL_DISABLED
    *kind = UR_CONTEXT_COPIED;
#else
    if (++ur_copies <= UR_MANY_COPIES) *kind = UR_CONTEXT_COPIED;
    else { *kind = UR_CONTEXT_HIDDEN; PyObject_GC_UnTrack(context); }
#endif
    return context;
}

static inline void ur_context_show(PyObject *context, uint8_t *kind) {
    if (*kind == UR_CONTEXT_HIDDEN) { *kind = UR_CONTEXT_COPIED; PyObject_GC_Track(context); }
}

static inline void ur_context_drop(PyObject *context, uint8_t kind) {
    if (context == NULL) return;
#ifndef Py_GIL_DISABLED
    if (kind != UR_CONTEXT_GIVEN) ur_copies--;
#endif
    ur_context_show(context, &kind);
    Py_DECREF(context);
}

static inline int ur_context_visit(PyObject *context, uint8_t kind, visitproc visit, void *arg) {
    if (context == NULL) return 0;
    if (kind == UR_CONTEXT_HIDDEN && Py_REFCNT(context) == 1) return Py_TYPE(context)->tp_traverse(context, visit, arg);
    return visit(context, arg);
}

#endif
