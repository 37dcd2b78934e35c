/* OpenSSL, called on the session inside one of CPython's own ssl objects, and two BIOs of our own for that session.
 *
 * CPython's methods cost as much as decrypting a small record: they release the GIL, copy between MemoryBIOs, and make
 * objects. These functions call the OpenSSL that CPython's `_ssl` has loaded, by the symbols of that shared object, never
 * a second copy. They only move data. For everything else, and for every error, the caller calls CPython's method, which
 * works on the same session and the same BIOs.
 *
 * A failed call leaves its error in OpenSSL's queue. The caller then calls CPython's method at once, which raises what it
 * finds there, and clears the queue. So that the session adds no second error, it is told meanwhile that the peer's
 * close_notify has come: a read of such a session fails before it does anything.
 *
 * This depends on the layout of two of CPython's structures. A canary compares them with what OpenSSL says
 * (canaries.py). The variables are static, so only one module can use this header. */
#ifndef URINGLOOP_OPENSSL_H
#define URINGLOOP_OPENSSL_H

#include <Python.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct ssl_st ur_ssl;
typedef struct bio_st ur_bio;
typedef struct bio_method_st ur_bio_method;

/* The beginnings of CPython's structures. */
typedef struct {
    PyObject_HEAD
    PyObject *socket; /* NULL: the session has BIOs */
    ur_ssl *ssl;
    PyObject *context;
} ur_session_object;

typedef struct {
    PyObject_HEAD
    ur_bio *bio;
} ur_bio_object;

/* Ciphertext that has arrived: first the kept bytes, then the lent ones. A BIO owns it. */
typedef struct {
    const char *lent; /* the caller's memory; the caller takes it back before it is gone */
    size_t lent_size;
    char *kept;
    size_t kept_start, kept_size, kept_capacity;
} ur_arrived;

/* Ciphertext to send: first what is in the room, then the kept bytes. A BIO owns it. */
typedef struct {
    char *room; /* the caller's memory, lent for one call */
    size_t room_size, room_used;
    char *kept;
    size_t kept_size, kept_capacity;
} ur_leaving;

enum { UR_TLS_FULL, UR_TLS_DRY, UR_TLS_PARTIAL, UR_TLS_FAILED, UR_TLS_OTHER }; /* how reading ended: see ur_tls_read */
enum { UR_TLS_LARGE = 32768 }; /* from this size on, a call lets other threads run meanwhile */

/* OpenSSL's functions: return type, name, parameters. */
#define UR_OPENSSL(F)                                                                        \
    F(int, SSL_read_ex, (ur_ssl *, void *, size_t, size_t *))                                \
    F(int, SSL_write_ex, (ur_ssl *, const void *, size_t, size_t *))                         \
    F(int, SSL_get_error, (const ur_ssl *, int))                                             \
    F(int, SSL_pending, (const ur_ssl *))                                                    \
    F(int, SSL_get_shutdown, (const ur_ssl *))                                               \
    F(void, SSL_set_shutdown, (ur_ssl *, int))                                               \
    F(ur_bio *, SSL_get_rbio, (const ur_ssl *))                                              \
    F(ur_bio *, SSL_get_wbio, (const ur_ssl *))                                              \
    F(void *, SSL_get_ex_data, (const ur_ssl *, int))                                        \
    F(void, SSL_set_bio, (ur_ssl *, ur_bio *, ur_bio *))                                     \
    F(unsigned long, ERR_peek_error, (void))                                                 \
    F(void, ERR_clear_error, (void))                                                         \
    F(int, BIO_get_new_index, (void))                                                        \
    F(ur_bio_method *, BIO_meth_new, (int, const char *))                                    \
    F(int, BIO_meth_set_read, (ur_bio_method *, int (*)(ur_bio *, char *, int)))             \
    F(int, BIO_meth_set_write, (ur_bio_method *, int (*)(ur_bio *, const char *, int)))      \
    F(int, BIO_meth_set_ctrl, (ur_bio_method *, long (*)(ur_bio *, int, long, void *)))      \
    F(int, BIO_meth_set_destroy, (ur_bio_method *, int (*)(ur_bio *)))                       \
    F(ur_bio *, BIO_new, (const ur_bio_method *))                                            \
    F(int, BIO_free, (ur_bio *))                                                             \
    F(void, BIO_set_data, (ur_bio *, void *))                                                \
    F(void *, BIO_get_data, (ur_bio *))                                                      \
    F(void, BIO_set_init, (ur_bio *, int))                                                   \
    F(void, BIO_set_flags, (ur_bio *, int))                                                  \
    F(void, BIO_clear_flags, (ur_bio *, int))

#define UR_POINTER(result, name, parameters) result(*name) parameters;
static struct { UR_OPENSSL(UR_POINTER) } ur_openssl;
static ur_bio_method *ur_arrived_method, *ur_leaving_method;

/* OpenSSL's constants. */
enum { UR_SSL_ERROR_SSL = 1, UR_SSL_ERROR_WANT_READ = 2, UR_SSL_RECEIVED_SHUTDOWN = 2 };
enum { UR_BIO_TYPE_SOURCE_SINK = 0x400, UR_BIO_READ = 1, UR_BIO_RETRY = 8, UR_BIO_RETRY_MASK = 15 };
enum { UR_BIO_CTRL_PENDING = 10, UR_BIO_CTRL_FLUSH = 11, UR_BIO_CTRL_DUP = 12, UR_BIO_CTRL_WPENDING = 13 };

/* The BIOs. CPython's methods release the GIL around the calls that end here, so none of this touches an object. */

static int ur_arrived_read(ur_bio *bio, char *to, int wanted)
{
    ur_arrived *in = ur_openssl.BIO_get_data(bio);
    size_t size, left = wanted < 0 ? 0 : (size_t)wanted, got = 0;
    ur_openssl.BIO_clear_flags(bio, UR_BIO_RETRY_MASK);
    if (in->kept_size > 0) {
        size = got = in->kept_size < left ? in->kept_size : left;
        memcpy(to, in->kept + in->kept_start, size);
        in->kept_start += size;
        in->kept_size -= size;
        left -= size;
        if (in->kept_size == 0) {
            free(in->kept);
            in->kept = NULL;
            in->kept_start = in->kept_capacity = 0;
        }
    }
    if (left > 0 && in->lent_size > 0) {
        size = in->lent_size < left ? in->lent_size : left;
        memcpy(to + got, in->lent, size);
        in->lent += size;
        in->lent_size -= size;
        got += size;
    }
    if (got > 0) return (int)got;
    ur_openssl.BIO_set_flags(bio, UR_BIO_READ | UR_BIO_RETRY);
    return -1;
}

static int ur_leaving_write(ur_bio *bio, const char *from, int count)
{
    ur_leaving *out = ur_openssl.BIO_get_data(bio);
    size_t size = count < 0 ? 0 : (size_t)count, capacity;
    char *larger;
    ur_openssl.BIO_clear_flags(bio, UR_BIO_RETRY_MASK);
    if (out->kept_size == 0 && size <= out->room_size - out->room_used) {
        memcpy(out->room + out->room_used, from, size);
        out->room_used += size;
        return count;
    }
    if (size > out->kept_capacity - out->kept_size) {
        capacity = out->kept_size + size + out->kept_capacity / 2;
        larger = realloc(out->kept, capacity);
        if (larger == NULL) return -1;
        out->kept = larger;
        out->kept_capacity = capacity;
    }
    memcpy(out->kept + out->kept_size, from, size);
    out->kept_size += size;
    return count;
}

static long ur_arrived_control(ur_bio *bio, int command, long number, void *place)
{
    ur_arrived *in = ur_openssl.BIO_get_data(bio);
    (void)number, (void)place;
    if (command == UR_BIO_CTRL_PENDING) return (long)(in->kept_size + in->lent_size);
    return command == UR_BIO_CTRL_FLUSH || command == UR_BIO_CTRL_DUP;
}

static long ur_leaving_control(ur_bio *bio, int command, long number, void *place)
{
    ur_leaving *out = ur_openssl.BIO_get_data(bio);
    (void)number, (void)place;
    if (command == UR_BIO_CTRL_WPENDING) return (long)(out->room_used + out->kept_size);
    return command == UR_BIO_CTRL_FLUSH || command == UR_BIO_CTRL_DUP;
}

static int ur_arrived_destroy(ur_bio *bio)
{
    ur_arrived *in = ur_openssl.BIO_get_data(bio);
    if (in != NULL) free(in->kept);
    free(in);
    return 1;
}

static int ur_leaving_destroy(ur_bio *bio)
{
    ur_leaving *out = ur_openssl.BIO_get_data(bio);
    if (out != NULL) free(out->kept);
    free(out);
    return 1;
}

static ur_bio_method *ur_bio_method_of(const char *name, int (*read)(ur_bio *, char *, int), int (*write)(ur_bio *, const char *, int),
                                       long (*control)(ur_bio *, int, long, void *), int (*destroy)(ur_bio *))
{
    ur_bio_method *method = ur_openssl.BIO_meth_new(ur_openssl.BIO_get_new_index() | UR_BIO_TYPE_SOURCE_SINK, name);
    if (method == NULL || (read != NULL && !ur_openssl.BIO_meth_set_read(method, read)) ||
        (write != NULL && !ur_openssl.BIO_meth_set_write(method, write)) || !ur_openssl.BIO_meth_set_ctrl(method, control) ||
        !ur_openssl.BIO_meth_set_destroy(method, destroy))
        return NULL; /* no memory */
    return method;
}

/* Called once: 1 if this shared object, which is loaded, has all of OpenSSL's functions, itself or in what it is linked to. */
static int ur_openssl_found(const char *path)
{
    void *handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD), *found;
    if (handle == NULL) return 0;
#define UR_FIND(result, name, parameters)                  \
    if ((found = dlsym(handle, #name)) == NULL) return 0;  \
    memcpy(&ur_openssl.name, &found, sizeof found);
    UR_OPENSSL(UR_FIND)
    ur_arrived_method = ur_bio_method_of("uringloop arrived", ur_arrived_read, NULL, ur_arrived_control, ur_arrived_destroy);
    ur_leaving_method = ur_bio_method_of("uringloop leaving", NULL, ur_leaving_write, ur_leaving_control, ur_leaving_destroy);
    return ur_arrived_method != NULL && ur_leaving_method != NULL;
}

/* The canary's first half: whether a session that has not begun has the known layout. It follows a pointer only where the
 * two fields around it have the known values. */
static int ur_session_is_as_known(PyObject *session, PyObject *context, PyObject *incoming, PyObject *outgoing)
{
    ur_session_object *known = (ur_session_object *)session;
    ur_bio *in = ((ur_bio_object *)incoming)->bio, *out = ((ur_bio_object *)outgoing)->bio;
    if (Py_TYPE(session)->tp_basicsize < (Py_ssize_t)sizeof(ur_session_object) || Py_TYPE(session)->tp_itemsize != 0 ||
        Py_TYPE(incoming)->tp_basicsize < (Py_ssize_t)sizeof(ur_bio_object) || Py_TYPE(outgoing) != Py_TYPE(incoming))
        return 0;
    if (known->socket != NULL || known->context != context || known->ssl == NULL || (uintptr_t)known->ssl % sizeof(void *))
        return 0;
    return ur_openssl.SSL_get_ex_data(known->ssl, 0) == session && in != out && ur_openssl.SSL_get_rbio(known->ssl) == in &&
           ur_openssl.SSL_get_wbio(known->ssl) == out;
}

/* Gives the session our two BIOs in place of its MemoryBIOs, before it begins. NULL: no memory. The BIOs, and with them
 * what `in` and `out` get, live as long as the SSL, and that as long as the session's object. */
static ur_ssl *ur_session_take(PyObject *session, ur_arrived **in, ur_leaving **out)
{
    ur_ssl *ssl = ((ur_session_object *)session)->ssl;
    ur_bio *arrived = ur_openssl.BIO_new(ur_arrived_method), *leaving = ur_openssl.BIO_new(ur_leaving_method);
    *in = calloc(1, sizeof **in);
    *out = calloc(1, sizeof **out);
    if (arrived == NULL || leaving == NULL || *in == NULL || *out == NULL) {
        free(*in);
        free(*out);
        if (arrived != NULL) ur_openssl.BIO_free(arrived);
        if (leaving != NULL) ur_openssl.BIO_free(leaving);
        ur_openssl.ERR_clear_error();
        return NULL;
    }
    ur_openssl.BIO_set_data(arrived, *in);
    ur_openssl.BIO_set_data(leaving, *out);
    ur_openssl.BIO_set_init(arrived, 1);
    ur_openssl.BIO_set_init(leaving, 1);
    ur_openssl.SSL_set_bio(ssl, arrived, leaving);
    return ssl;
}

static inline size_t ur_arrived_size(const ur_arrived *in) { return in->kept_size + in->lent_size; }

/* Copies what is left of the lent memory. -1: no memory, and the bytes are lost. */
static int ur_arrived_keep(ur_arrived *in)
{
    size_t size = in->lent_size, capacity;
    char *kept;
    in->lent_size = 0;
    if (size > in->kept_capacity - in->kept_start - in->kept_size) {
        capacity = size + in->kept_size + in->kept_size / 2;
        kept = malloc(capacity);
        if (kept == NULL) return -1;
        if (in->kept_size > 0) memcpy(kept, in->kept + in->kept_start, in->kept_size);
        free(in->kept);
        in->kept = kept;
        in->kept_start = 0;
        in->kept_capacity = capacity;
    }
    if (size > 0) memcpy(in->kept + in->kept_start + in->kept_size, in->lent, size);
    in->kept_size += size;
    return 0;
}

/* Moves the kept bytes to `to`, which has room for them. */
static void ur_leaving_kept(ur_leaving *out, char *to)
{
    memcpy(to, out->kept, out->kept_size);
    free(out->kept);
    out->kept = NULL;
    out->kept_size = out->kept_capacity = 0;
}

static inline void ur_clear_stale_errors(void)
{
    if (ur_openssl.ERR_peek_error()) ur_openssl.ERR_clear_error(); /* of other code, which would be taken for the session's */
}

/* For assertions: whether the last call has left an error in OpenSSL's queue. */
static inline int ur_errors_are_left(void) { return ur_openssl.ERR_peek_error() != 0; }

/* Reads plain text until the room is full (UR_TLS_FULL), or there is none until more ciphertext arrives: UR_TLS_DRY, or
 * UR_TLS_PARTIAL if the session may hold a part of a record. Otherwise CPython's method is to say what happened, between
 * ur_session_silence and ur_session_restore if it was UR_TLS_FAILED. */
static size_t ur_tls_read_records(ur_ssl *ssl, ur_arrived *in, char *room, size_t size, int *end)
{
    size_t got = 0, count;
    int error;
    ur_clear_stale_errors();
    for (*end = UR_TLS_FULL; got < size; got += count) {
        if (!ur_openssl.SSL_read_ex(ssl, room + got, size - got, &count)) {
            error = ur_openssl.SSL_get_error(ssl, 0);
            *end = error == UR_SSL_ERROR_WANT_READ ? UR_TLS_PARTIAL : error == UR_SSL_ERROR_SSL ? UR_TLS_FAILED : UR_TLS_OTHER;
            break;
        }
        if (ur_arrived_size(in) == 0 && (count < size - got || ur_openssl.SSL_pending(ssl) == 0)) {
            got += count;
            *end = UR_TLS_DRY;
            break;
        }
    }
    return got;
}

/* The next read adds no error to OpenSSL's queue. Returns what ur_session_restore takes. */
static inline int ur_session_silence(ur_ssl *ssl)
{
    int before = ur_openssl.SSL_get_shutdown(ssl);
    ur_openssl.SSL_set_shutdown(ssl, before | UR_SSL_RECEIVED_SHUTDOWN);
    return before;
}

static inline void ur_session_restore(ur_ssl *ssl, int before) { ur_openssl.SSL_set_shutdown(ssl, before); }

/* Encrypts so many of the bytes as the session takes. UR_TLS_DRY: it has to hear from the peer first. */
static size_t ur_tls_write_records(ur_ssl *ssl, const char *data, size_t size, int *end)
{
    size_t done = 0, count;
    ur_clear_stale_errors();
    for (*end = UR_TLS_FULL; done < size; done += count) {
        if (!ur_openssl.SSL_write_ex(ssl, data + done, size - done, &count)) {
            *end = ur_openssl.SSL_get_error(ssl, 0) == UR_SSL_ERROR_WANT_READ ? UR_TLS_DRY : UR_TLS_OTHER;
            break;
        }
    }
    return done;
}

/* The same two, safe against other threads that use the session's object. With the GIL, which a large call releases, that
 * is as safe as CPython's methods. Without it, the calls exclude the methods that ask the session for something. */
#ifdef Py_GIL_DISABLED
#define UR_CALL_OPENSSL(session, size, call) \
    Py_BEGIN_CRITICAL_SECTION(session);      \
    call;                                    \
    Py_END_CRITICAL_SECTION();
#else
#define UR_CALL_OPENSSL(session, size, call)         \
    if ((size) < UR_TLS_LARGE) { call; }             \
    else { Py_BEGIN_ALLOW_THREADS call; Py_END_ALLOW_THREADS }
#endif

static size_t ur_tls_read(PyObject *session, ur_ssl *ssl, ur_arrived *in, char *room, size_t size, int *end)
{
    size_t got, most = ur_arrived_size(in);
    (void)session;
    UR_CALL_OPENSSL(session, size < most ? size : most, got = ur_tls_read_records(ssl, in, room, size, end))
    return got;
}

static size_t ur_tls_write(PyObject *session, ur_ssl *ssl, const char *data, size_t size, int *end)
{
    size_t done;
    (void)session;
    UR_CALL_OPENSSL(session, size, done = ur_tls_write_records(ssl, data, size, end))
    return done;
}

#endif
