from uringloop._core.tls.connection cimport TlsConnection


cdef class TlsTransport:
    # The loop's thread only.
    cdef TlsConnection connection
    cdef object __weakref__
