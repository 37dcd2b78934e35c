# Declarations of openssl.h: OpenSSL, called on the session inside one of CPython's own ssl objects.
cdef extern from "cpython/openssl.h":
    ctypedef struct ur_ssl:
        pass
    ctypedef struct ur_arrived:
        const char *lent
        size_t lent_size
    ctypedef struct ur_leaving:
        char *room
        size_t room_size, room_used
        size_t kept_size

    int UR_TLS_FULL, UR_TLS_DRY, UR_TLS_PARTIAL, UR_TLS_FAILED, UR_TLS_OTHER
    bint ur_openssl_found(const char *path) noexcept
    bint ur_session_is_as_known(object session, object context, object incoming, object outgoing) noexcept
    ur_ssl *ur_session_take(object session, ur_arrived **arrived, ur_leaving **leaving) noexcept
    size_t ur_arrived_size(const ur_arrived *arrived) noexcept
    void ur_leaving_kept(ur_leaving *leaving, char *to) noexcept
    bint ur_errors_are_left() noexcept
    int ur_arrived_keep(ur_arrived *arrived) noexcept
    int ur_session_silence(ur_ssl *ssl) noexcept
    void ur_session_restore(ur_ssl *ssl, int before) noexcept
    size_t ur_tls_read(object session, ur_ssl *ssl, ur_arrived *arrived, char *room, size_t size, int *end) noexcept
    size_t ur_tls_write(object session, ur_ssl *ssl, const char *data, size_t size, int *end) noexcept
