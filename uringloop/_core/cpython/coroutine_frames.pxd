# Finds the program's coroutine that calls, by its frame, and tells whether that handles the GeneratorExit that destroys it.
# CPython documents the frames of coroutines, but not how to see which exception a running coroutine handles, nor that only
# the coroutine refers to its frame. Only one module can use this, because it has the only copy of the static variables.
from cpython.object cimport PyObject

cdef extern from *:
    """
    static PyObject *ur_helpers[2]; /* the files whose coroutines acquire and release for their caller */

    static int ur_is_a_helper(PyFrameObject *frame) {
        PyCodeObject *code = PyFrame_GetCode(frame);
        PyObject *file = code->co_filename; /* all functions of a module share this object */
        Py_DECREF(code);
        return file == ur_helpers[0] || file == ur_helpers[1];
    }

    /* Whether this coroutine handles the GeneratorExit that destroys it. The interpreter keeps a linked list of the exceptions
     * that running coroutines handle; a coroutine's item lies in the coroutine itself. */
    static int ur_is_exiting(PyObject *coroutine) {
        _PyErr_StackItem *item = PyThreadState_Get()->exc_info;
        char *begin = (char *)coroutine, *end = begin + Py_TYPE(coroutine)->tp_basicsize;
        while (item != NULL && ((char *)item < begin || (char *)item >= end)) item = item->previous_item;
        return item != NULL && item->exc_value != NULL && PyErr_GivenExceptionMatches(item->exc_value, PyExc_GeneratorExit);
    }

    /* Finds the nearest frame of a coroutine, or generator, of the program among `most` frames from `frame` on, and takes over
     * the reference to `frame`. NULL, without an exception: there is none. Below a coroutine that is being destroyed are the
     * frames of the code that destroys it, which may be any code, because a collection can begin anywhere:
     * `beyond_exiting` says whether to search them, too. */
    static PyObject *ur_coroutine_frame(PyFrameObject *frame, int most, int beyond_exiting) {
        PyFrameObject *back;
        PyObject *owner;
        int exiting;
        while (frame != NULL) {
            if (most-- == 0) {
                Py_DECREF(frame);
                break;
            }
            owner = PyFrame_GetGenerator(frame);
            if (owner != NULL) {
                exiting = !beyond_exiting && ur_is_exiting(owner);
                Py_DECREF(owner);
                if (!ur_is_a_helper(frame)) return (PyObject *)frame;
                if (exiting) {
                    Py_DECREF(frame);
                    break;
                }
            }
            back = PyFrame_GetBack(frame);
            Py_DECREF(frame);
            frame = back;
        }
        return NULL;
    }

    static int ur_frames_are_used = 1; /* 0, the plain path: never finds a coroutine */

    static PyObject *ur_own_frame(int most) {
        PyFrameObject *frame;
        if (!ur_frames_are_used) return NULL;
        frame = PyEval_GetFrame();
        if (frame == NULL) PyErr_Clear(); /* no memory for it */
        Py_XINCREF(frame);
        return ur_coroutine_frame(frame, most, most > 0);
    }

    /* The next frame after one that ur_own_frame has found: of the same coroutine, or of one that awaits it. */
    static PyObject *ur_next_frame(PyObject *frame) {
        PyObject *owner = PyFrame_GetGenerator((PyFrameObject *)frame);
        int exiting = owner != NULL && ur_is_exiting(owner);
        Py_XDECREF(owner);
        return exiting ? NULL : ur_coroutine_frame(PyFrame_GetBack((PyFrameObject *)frame), -1, 0);
    }

    /* Whether the frame's coroutine has ended: only a coroutine that has not ended refers to its frame, beside the caller's
     * own `references`. (PyFrame_GetGenerator would not be safe free-threaded: another thread may be destroying the
     * coroutine.) */
    static int ur_has_ended(PyObject *frame, Py_ssize_t references) { return Py_REFCNT(frame) <= references; }

    static int ur_is_destroyed(void) {
        PyObject *handled = PyErr_GetHandledException();
        int found = handled != NULL && PyErr_GivenExceptionMatches(handled, PyExc_GeneratorExit);
        Py_XDECREF(handled);
        return found;
    }

    static void ur_use_frames(int used) { ur_frames_are_used = used; }

    static void ur_set_helpers(PyObject *first, PyObject *second) {
        Py_INCREF(first), Py_INCREF(second);
        ur_helpers[0] = first, ur_helpers[1] = second;
    }
    """
    PyObject *ur_own_frame(int most) noexcept
    PyObject *ur_next_frame(object frame) noexcept
    bint ur_has_ended(PyObject *frame, Py_ssize_t references) noexcept
    bint ur_is_destroyed() noexcept
    bint ur_is_exiting(PyObject *coroutine) noexcept
    void ur_use_frames(bint used) noexcept
    void ur_set_helpers(object first, object second) noexcept
