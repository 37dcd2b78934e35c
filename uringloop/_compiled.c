/* All compiled modules of uringloop, in one shared object: as many shared objects would take most of the time of an
 * import, because the dynamic linker looks up the same few hundred names of the interpreter for each of them.
 *
 * This module finds and makes the others: `uringloop/__init__.py` puts it into sys.meta_path. It never runs their code
 * before they are imported, and holds nothing of theirs. setup.py writes the table of the modules, and of the folders
 * without an `__init__.py`, which importlib would otherwise look for in every folder of the path.
 *
 * While `uringloop/__init__.py` runs, modules that need each other are made here at once (ur_import): importlib takes
 * as long to find and lock one as the module itself takes. The locks are not missed: what else imports a module of
 * uringloop waits for `uringloop` first. Afterwards all imports are importlib's. */

#include <Python.h>
#include <string.h>

#define UR_MODULE(name, init) PyObject *init(void);
#define UR_FOLDER(name, place)
#include UR_MODULES
#undef UR_MODULE
#undef UR_FOLDER

typedef struct {
    const char *name;
    PyObject *(*init)(void); /* of a module */
    const char *place;       /* of a folder, inside of the package's */
} Compiled;

/* in the order of strcmp */
static const Compiled modules[] = {
#define UR_MODULE(name, init) {name, init, NULL},
#define UR_FOLDER(name, place) {name, NULL, place},
#include UR_MODULES
};

typedef struct {
    PyObject *spec_class; /* importlib.machinery.ModuleSpec */
    PyObject *path;       /* of this file */
    PyObject *package;    /* the folder that it is in */
} State;

static PyObject *starting; /* this module, while `uringloop/__init__.py` runs; a borrowed reference */
static unsigned long starter; /* its thread */

static int compare_names(const void *name, const void *module) {
    return strcmp(name, ((const Compiled *)module)->name);
}

static const Compiled *find(PyObject *name) {
    Py_ssize_t size;
    const char *text = PyUnicode_AsUTF8AndSize(name, &size);
    if (text == NULL) {
        return NULL;
    }
    if (strncmp(text, "uringloop.", 10) != 0 || strlen(text) != (size_t)size) { /* nearly all that a program imports */
        return NULL;
    }
    return bsearch(text, modules, sizeof modules / sizeof *modules, sizeof *modules, compare_names);
}

/* A new reference: the spec of a module that is in this file. */
static PyObject *spec_of_module(PyObject *self, PyObject *name) {
    State *state = PyModule_GetState(self);
    PyObject *spec = PyObject_CallFunctionObjArgs(state->spec_class, name, self, NULL);
    if (spec != NULL && (PyObject_SetAttrString(spec, "origin", state->path) < 0 ||
                         PyObject_SetAttrString(spec, "has_location", Py_True) < 0)) {
        Py_CLEAR(spec);
    }
    return spec;
}

/* A new reference: the spec of a folder, as a package without code. */
static PyObject *spec_of_folder(PyObject *self, PyObject *name, const char *place) {
    State *state = PyModule_GetState(self);
    PyObject *spec = PyObject_CallFunctionObjArgs(state->spec_class, name, self, NULL);
    PyObject *places = spec == NULL ? NULL : Py_BuildValue("[N]", PyUnicode_FromFormat("%U/%s", state->package, place));
    if (places == NULL || PyObject_SetAttrString(spec, "submodule_search_locations", places) < 0) {
        Py_CLEAR(spec);
    }
    Py_XDECREF(places);
    return spec;
}

/* A new reference: the spec of what the table has, or None. */
static PyObject *find_spec(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords) {
    if (count < 1 || !PyUnicode_Check(args[0])) {
        PyErr_SetString(PyExc_TypeError, "find_spec() needs the name of a module");
        return NULL;
    }
    const Compiled *found = find(args[0]);
    if (found == NULL) {
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    }
    return found->init == NULL ? spec_of_folder(self, args[0], found->place) : spec_of_module(self, args[0]);
}

/* A new reference: the names of all modules in this file. */
static PyObject *names(PyObject *self, PyObject *nothing) {
    PyObject *found = PyList_New(0);
    for (size_t i = 0; found != NULL && i < sizeof modules / sizeof *modules; i++) {
        PyObject *name = modules[i].init == NULL ? NULL : PyUnicode_FromString(modules[i].name);
        if (modules[i].init != NULL && (name == NULL || PyList_Append(found, name) < 0)) {
            Py_CLEAR(found);
        }
        Py_XDECREF(name);
    }
    return found;
}

/* 0: the definition claims all that this module has claimed for it when it was loaded. */
static int check_claims(PyModuleDef *definition, PyObject *name) {
#ifdef Py_GIL_DISABLED
    for (PyModuleDef_Slot *slot = definition->m_slots; slot != NULL && slot->slot != 0; slot++) {
        if (slot->slot == Py_mod_gil && slot->value == Py_MOD_GIL_NOT_USED) {
            return 0;
        }
    }
    PyErr_Format(PyExc_ImportError, "%U needs the GIL, and uringloop's shared object was loaded without it", name);
    return -1;
#else
    (void)definition, (void)name;
    return 0;
#endif
}

/* A new reference: the module, whose code has not run yet; None for a folder, which importlib makes. */
static PyObject *create_module(PyObject *self, PyObject *spec) {
    PyObject *name = PyObject_GetAttrString(spec, "name");
    if (name == NULL) {
        return NULL;
    }
    PyObject *module = NULL;
    const Compiled *found = PyUnicode_Check(name) ? find(name) : NULL;
    if (found != NULL && found->init == NULL) {
        module = Py_NewRef(Py_None);
    } else if (found != NULL) {
        PyObject *definition = found->init(); /* static: no reference to give back */
        if (definition != NULL && check_claims((PyModuleDef *)definition, name) == 0) {
            module = PyModule_FromDefAndSpec((PyModuleDef *)definition, spec);
        }
    } else if (!PyErr_Occurred()) {
        PyErr_Format(PyExc_ImportError, "%R is no compiled module of uringloop", name);
    }
    Py_DECREF(name);
    return module;
}

static PyObject *exec_module(PyObject *self, PyObject *module) {
    PyModuleDef *definition = PyModule_GetDef(module);
    if (definition == NULL) {
        PyObject *name = PyErr_Occurred() ? NULL : PyModule_GetNameObject(module);
        const Compiled *found = name == NULL ? NULL : find(name);
        Py_XDECREF(name);
        if (found != NULL && found->init == NULL) {
            Py_RETURN_NONE;
        }
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_ImportError, "that is no compiled module of uringloop");
        }
        return NULL;
    }
    return PyModule_ExecDef(module, definition) < 0 ? NULL : Py_NewRef(Py_None);
}

/* A new reference: what importlib would make of the spec, before the module's code runs. */
static PyObject *module_of(const Compiled *found, PyObject *name, PyObject *spec) {
    if (found->init != NULL) { /* Cython's code sets the other names of modules from the spec */
        PyObject *module = create_module(starting, spec);
        if (module != NULL && PyObject_SetAttrString(module, "__spec__", spec) < 0) {
            Py_CLEAR(module);
        }
        return module;
    }
    PyObject *module = PyModule_NewObject(name);
    PyObject *places = PyObject_GetAttrString(spec, "submodule_search_locations");
    if (module == NULL || places == NULL || PyObject_SetAttrString(module, "__path__", places) < 0 ||
        PyObject_SetAttrString(module, "__package__", name) < 0 || PyObject_SetAttrString(module, "__spec__", spec) < 0 ||
        PyObject_SetAttrString(module, "__loader__", starting) < 0) {
        Py_CLEAR(module);
    }
    Py_XDECREF(places);
    return module;
}

/* Takes a module that has failed out of sys.modules; its exception stays set. */
static void forget(PyObject *all, PyObject *name) {
#if PY_VERSION_HEX >= 0x030C0000
    PyObject *error = PyErr_GetRaisedException();
#else
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
#endif
    if (PyObject_DelItem(all, name) < 0) {
        PyErr_Clear();
    }
#if PY_VERSION_HEX >= 0x030C0000
    PyErr_SetRaisedException(error);
#else
    PyErr_Restore(type, error, traceback);
#endif
}

static PyObject *import_at_once(PyObject *name, const Compiled *found);

/* A new reference: the package that the module is in. Sets `last` to where the module's own name begins. */
static PyObject *package_of(PyObject *name, Py_ssize_t *last) {
    Py_ssize_t dot = PyUnicode_FindChar(name, '.', 0, PyUnicode_GET_LENGTH(name), -1);
    PyObject *above = dot < 0 ? NULL : PyUnicode_Substring(name, 0, dot);
    const Compiled *found = above == NULL ? NULL : find(above);
    PyObject *package = NULL;
    if (found != NULL) {
        package = import_at_once(above, found);
    } else if (above != NULL && !PyErr_Occurred()) {
        package = PyImport_Import(above);
    }
    Py_XDECREF(above);
    *last = dot + 1;
    return package;
}

/* A new reference: the module, imported without importlib's help. */
static PyObject *import_at_once(PyObject *name, const Compiled *found) {
    PyObject *module = PyImport_GetModule(name);
    if (module != NULL || PyErr_Occurred()) {
        return module;
    }
    PyObject *all = PyImport_GetModuleDict(), *spec = NULL, *own_name = NULL, *done = NULL;
    Py_ssize_t last;
    PyObject *package = package_of(name, &last);
    if (package == NULL) {
        return NULL;
    }
    spec = found->init == NULL ? spec_of_folder(starting, name, found->place) : spec_of_module(starting, name);
    module = spec == NULL ? NULL : module_of(found, name, spec);
    if (module == NULL || PyObject_SetItem(all, name, module) < 0) {
        goto end;
    }
    done = exec_module(starting, module);
    if (done == NULL) {
        forget(all, name);
        goto end;
    }
    own_name = PyUnicode_Substring(name, last, PyUnicode_GET_LENGTH(name));
    if (own_name == NULL || PyObject_SetAttr(package, own_name, module) < 0) {
        Py_CLEAR(done);
    }
end:
    if (done == NULL) {
        Py_CLEAR(module);
    }
    Py_DECREF(package);
    Py_XDECREF(spec);
    Py_XDECREF(own_name);
    Py_XDECREF(done);
    return module;
}

/* What the modules in this file call instead of PyImport_ImportModule (_compiled.h). */
PyObject *ur_import(const char *text) {
    if (starting == NULL || starter != PyThread_get_thread_ident()) {
        return PyImport_ImportModule(text);
    }
    PyObject *name = PyUnicode_FromString(text);
    const Compiled *found = name == NULL ? NULL : find(name);
    PyObject *module = NULL;
    if (found != NULL) {
        module = import_at_once(name, found);
    } else if (name != NULL && !PyErr_Occurred()) {
        module = PyImport_Import(name);
    }
    Py_XDECREF(name);
    return module;
}

static PyObject *start(PyObject *self, PyObject *on) {
    starter = PyThread_get_thread_ident();
    starting = on == Py_True ? self : NULL;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"find_spec", (PyCFunction)(void (*)(void))find_spec, METH_FASTCALL | METH_KEYWORDS, NULL},
    {"create_module", create_module, METH_O, NULL},
    {"exec_module", exec_module, METH_O, NULL},
    {"names", names, METH_NOARGS, NULL},
    {"start", start, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static int begin(PyObject *self) {
    State *state = PyModule_GetState(self);
    PyObject *machinery = PyImport_ImportModule("importlib.machinery");
    if (machinery == NULL) {
        return -1;
    }
    state->spec_class = PyObject_GetAttrString(machinery, "ModuleSpec");
    Py_DECREF(machinery);
    state->path = PyModule_GetFilenameObject(self);
    if (state->spec_class == NULL || state->path == NULL) {
        return -1;
    }
    Py_ssize_t end = PyUnicode_FindChar(state->path, '/', 0, PyUnicode_GET_LENGTH(state->path), -1);
    state->package = PyUnicode_Substring(state->path, 0, end < 0 ? 0 : end);
    return state->package == NULL ? -1 : 0;
}

static int traverse(PyObject *self, visitproc visit, void *arg) {
    State *state = PyModule_GetState(self);
    if (state != NULL) {
        Py_VISIT(state->spec_class);
    }
    return 0;
}

static int clear(PyObject *self) {
    State *state = PyModule_GetState(self);
    if (state != NULL) {
        Py_CLEAR(state->spec_class);
        Py_CLEAR(state->path);
        Py_CLEAR(state->package);
    }
    return 0;
}

static void release(void *self) {
    clear(self);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, begin},
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
#ifdef Py_mod_multiple_interpreters
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
    {0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "uringloop._compiled",
    .m_size = sizeof(State),
    .m_methods = methods,
    .m_slots = slots,
    .m_traverse = traverse,
    .m_clear = clear,
    .m_free = release,
};

PyMODINIT_FUNC PyInit__compiled(void) {
    return PyModuleDef_Init(&definition);
}
