/* TLS for the client by the machine's own libssl, loaded at run time: no header and no package needed to compile. */
#ifndef BENCHMARK_TLS_H
#define BENCHMARK_TLS_H
#include "common.h"
#include <dlfcn.h>

enum { TLS_WANT_READ = 2, TLS_WANT_WRITE = 3, TLS_CTRL_MODE = 33, TLS_MODE = 1 | 2 /* partial and moving writes */ };

static struct {
    void *context;
    void *(*client_method)(void);
    void *(*context_new)(const void *);
    long (*context_ctrl)(void *, int, long, void *);
    void *(*new)(void *);
    void (*free)(void *);
    int (*set_fd)(void *, int);
    int (*connect)(void *);
    int (*read)(void *, void *, int);
    int (*write)(void *, const void *, int);
    int (*get_error)(const void *, int);
    int (*shutdown)(void *);
} tls;

static inline void tls_symbol(void *library, const char *name, void *place)
{
    void *symbol = dlsym(library, name);
    if (!symbol) { fprintf(stderr, "libssl has no %s\n", name); exit(1); }
    memcpy(place, &symbol, sizeof symbol);
}

static inline void tls_load(void)
{
    void *library = dlopen("libssl.so.3", RTLD_NOW);
    if (!library) library = dlopen("libssl.so.1.1", RTLD_NOW);
    if (!library) { fprintf(stderr, "no libssl\n"); exit(1); }
    tls_symbol(library, "TLS_client_method", &tls.client_method);
    tls_symbol(library, "SSL_CTX_new", &tls.context_new);
    tls_symbol(library, "SSL_CTX_ctrl", &tls.context_ctrl);
    tls_symbol(library, "SSL_new", &tls.new);
    tls_symbol(library, "SSL_free", &tls.free);
    tls_symbol(library, "SSL_set_fd", &tls.set_fd);
    tls_symbol(library, "SSL_connect", &tls.connect);
    tls_symbol(library, "SSL_read", &tls.read);
    tls_symbol(library, "SSL_write", &tls.write);
    tls_symbol(library, "SSL_get_error", &tls.get_error);
    tls_symbol(library, "SSL_shutdown", &tls.shutdown);
    tls.context = tls.context_new(tls.client_method());
    if (!tls.context) { fprintf(stderr, "SSL_CTX_new failed\n"); exit(1); }
    tls.context_ctrl(tls.context, TLS_CTRL_MODE, TLS_MODE, NULL);
}

/* The result of a TLS call as a plain system call would have given it. */
static inline ssize_t tls_result(void *ssl, int n)
{
    if (n > 0) return n;
    int error = tls.get_error(ssl, n);
    if (error == TLS_WANT_READ || error == TLS_WANT_WRITE) { errno = EAGAIN; return -1; }
    if (n == 0) return 0;
    errno = EPROTO;
    return -1;
}

#endif
