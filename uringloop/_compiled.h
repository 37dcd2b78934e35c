/* setup.py includes this file before the C of each module. */

/* The modules import each other through _compiled.c. */
#define PyImport_ImportModule ur_import

/* The linker puts the functions that the modules run once, when they are imported, next to each other. The kernel maps
 * code in steps of 64 KB, so an import maps a few steps in all, instead of one or two for each module. */
struct _object;
static int UR_EXEC(struct _object *) __attribute__((cold, section(".text.startup")));
