/* What setup.py includes before the C of each module. */

/* The modules import each other through _compiled.c. */
#define PyImport_ImportModule ur_import

/* The function that a module runs once, when it is imported, stands beside those of the other modules. The kernel maps
 * code in steps of 64 KB, and an import needs a few of these steps, not one or two of each module. */
struct _object;
static int UR_EXEC(struct _object *) __attribute__((cold, section(".text.startup")));
