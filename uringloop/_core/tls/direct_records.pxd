from cpython.object cimport PyObject

from uringloop._core.cpython.openssl cimport ur_arrived, ur_leaving, ur_ssl
from uringloop._core.tls.records cimport Records


cdef class DirectRecords(Records):
    # The loop's thread only.
    cdef ur_ssl *ssl               # the session that `data` owns; NULL once that is dropped
    cdef ur_arrived *arrived       # what the session's two BIOs own
    cdef ur_leaving *leaving
    cdef PyObject *sealed          # bytes, owned: the room that `leaving` was lent, with the ciphertext in it; or NULL
    cdef Py_ssize_t overhead       # the most by which a record was longer than its plain text

cdef Records records_of(object context, bint server_side, object server_hostname)
