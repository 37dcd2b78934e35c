# The restriction of rings: what URINGLOOP_RESTRICT lets a ring do. It restricts rings that are still disabled; from the
# moment they are enabled, the kernel refuses all other operations, register calls and flags with EACCES, and the process
# cannot take that back. Makes no ring.
import os

from libc.string cimport memset

from uringloop._core.kernel.abi cimport (
    IORING_OP_ACCEPT, IORING_OP_ASYNC_CANCEL, IORING_OP_CLOSE, IORING_OP_EPOLL_WAIT, IORING_OP_FADVISE,
    IORING_OP_FALLOCATE, IORING_OP_FSYNC, IORING_OP_FTRUNCATE, IORING_OP_LINKAT, IORING_OP_LINK_TIMEOUT,
    IORING_OP_MKDIRAT, IORING_OP_NOP, IORING_OP_OPENAT2, IORING_OP_POLL_ADD, IORING_OP_READ, IORING_OP_READ_FIXED,
    IORING_OP_RECV, IORING_OP_RENAMEAT, IORING_OP_SEND, IORING_OP_SENDMSG, IORING_OP_SPLICE, IORING_OP_STATX,
    IORING_OP_SYMLINKAT, IORING_OP_UNLINKAT, IORING_OP_WAITID, IORING_OP_WRITE, IORING_OP_WRITE_FIXED,
    IORING_REGISTER_BUFFERS2, IORING_REGISTER_BUFFERS_UPDATE, IORING_REGISTER_EVENTFD, IORING_REGISTER_PBUF_RING,
    IORING_REGISTER_PROBE, IORING_REGISTER_RESTRICTIONS, IORING_REGISTER_RING_FDS, IORING_RESTRICTION_REGISTER_OP,
    IORING_RESTRICTION_SQE_FLAGS_ALLOWED, IORING_RESTRICTION_SQE_OP, IORING_UNREGISTER_EVENTFD,
    IORING_UNREGISTER_RING_FDS, IOSQE_ASYNC, IOSQE_BUFFER_SELECT, IOSQE_CQE_SKIP_SUCCESS, IOSQE_IO_DRAIN,
    IOSQE_IO_HARDLINK, IOSQE_IO_LINK, io_uring_probe, io_uring_restriction, ur_io_uring_register,
)
from uringloop._core.kernel.libc cimport ENOMEM

# The name of each operation, at the place of its number.
NAMES = (
    "nop", "readv", "writev", "fsync", "read_fixed", "write_fixed", "poll_add", "poll_remove", "sync_file_range",
    "sendmsg", "recvmsg", "timeout", "timeout_remove", "accept", "async_cancel", "link_timeout", "connect",
    "fallocate", "openat", "close", "files_update", "statx", "read", "write", "fadvise", "madvise", "send", "recv",
    "openat2", "epoll_ctl", "splice", "provide_buffers", "remove_buffers", "tee", "shutdown", "renameat", "unlinkat",
    "mkdirat", "symlinkat", "linkat", "msg_ring", "fsetxattr", "setxattr", "fgetxattr", "getxattr", "socket",
    "uring_cmd", "send_zc", "sendmsg_zc", "read_multishot", "waitid", "futex_wait", "futex_wake", "futex_waitv",
    "fixed_fd_install", "ftruncate", "bind", "listen", "recv_zc", "epoll_wait",
)

# What the loop's own ring does; tests/_core/kernel/test_restriction.py compares it with the core's source.
OPERATIONS = frozenset((
    IORING_OP_ACCEPT, IORING_OP_ASYNC_CANCEL, IORING_OP_CLOSE, IORING_OP_EPOLL_WAIT, IORING_OP_FADVISE,
    IORING_OP_FALLOCATE, IORING_OP_FSYNC, IORING_OP_FTRUNCATE, IORING_OP_LINKAT, IORING_OP_MKDIRAT, IORING_OP_NOP,
    IORING_OP_OPENAT2, IORING_OP_POLL_ADD, IORING_OP_READ, IORING_OP_READ_FIXED, IORING_OP_RECV, IORING_OP_RENAMEAT,
    IORING_OP_SEND, IORING_OP_SENDMSG, IORING_OP_SPLICE, IORING_OP_STATX, IORING_OP_SYMLINKAT, IORING_OP_UNLINKAT,
    IORING_OP_WAITID, IORING_OP_WRITE, IORING_OP_WRITE_FIXED,
))
CALLS = frozenset((
    IORING_REGISTER_BUFFERS2, IORING_REGISTER_BUFFERS_UPDATE, IORING_REGISTER_PBUF_RING, IORING_REGISTER_RING_FDS,
    IORING_UNREGISTER_RING_FDS,
))
FLAGS = int(IOSQE_ASYNC | IOSQE_BUFFER_SELECT | IOSQE_CQE_SKIP_SUCCESS)

# What a ring of uringloop.ops does besides what its user asks for: timeouts, chains, and the eventfd that the loop watches.
# The user's operations are those of the loop, and those that URINGLOOP_RESTRICT adds.
OPS_CALLS = frozenset((IORING_REGISTER_EVENTFD, IORING_UNREGISTER_EVENTFD))
OPS_FLAGS = int(IOSQE_ASYNC | IOSQE_IO_DRAIN | IOSQE_IO_HARDLINK | IOSQE_IO_LINK)


def added():
    """The operations that URINGLOOP_RESTRICT adds, by number: `1,socket,futex_wait` adds two. Raises ValueError for an unknown
    name."""
    names = {name.strip().lower() for name in os.environ.get("URINGLOOP_RESTRICT", "").split(",")} - {"", "0", "1"}
    unknown = names.difference(NAMES)
    if unknown:
        raise ValueError(f"URINGLOOP_RESTRICT names no operation: {', '.join(sorted(unknown))}; "
                         f"there are {', '.join(NAMES)}")
    return frozenset(NAMES.index(name) for name in names)


def ops_operations():
    """The operations that a ring of uringloop.ops may do, by number."""
    return OPERATIONS | {IORING_OP_LINK_TIMEOUT} | added()


def restrict(int fd):
    """Restrict a loop's ring, which is still disabled. Returns 0 or -errno, because the caller has to close the ring first."""
    try:
        return _restrict(fd, OPERATIONS, CALLS, FLAGS)
    except MemoryError:
        return -ENOMEM


def restrict_ops(int fd):
    """Restrict a ring of uringloop.ops, which is still disabled."""
    cdef int err = _restrict(fd, ops_operations(), OPS_CALLS, OPS_FLAGS)
    if err < 0:
        raise OSError(-err, f"io_uring_register: the ring cannot be restricted: {os.strerror(-err)}")


cdef int _restrict(int fd, operations, calls, int flags) except? -1:
    cdef io_uring_restriction rules[256]
    cdef io_uring_probe known
    cdef unsigned count = 0
    cdef int number, err
    memset(rules, 0, sizeof(rules))
    memset(&known, 0, sizeof(known))
    # A kernel refuses the whole list for the number of an operation that it doesn't know.
    err = ur_io_uring_register(fd, IORING_REGISTER_PROBE, &known, 256)
    if err < 0:
        return err
    for number in operations:
        if number <= known.last_op:
            rules[count].opcode = IORING_RESTRICTION_SQE_OP
            rules[count].allowed = number
            count += 1
    for number in calls:
        rules[count].opcode = IORING_RESTRICTION_REGISTER_OP
        rules[count].allowed = number
        count += 1
    rules[count].opcode = IORING_RESTRICTION_SQE_FLAGS_ALLOWED
    rules[count].allowed = flags
    return ur_io_uring_register(fd, IORING_REGISTER_RESTRICTIONS, rules, count + 1)


def refusal_of(int operation, int flags, allowed):
    """What an error says if a ring of uringloop.ops with these allowed operations forbids this one; None if it doesn't."""
    if operation not in allowed:
        name = NAMES[operation] if operation < len(NAMES) else None
        if name is None:
            return f"URINGLOOP_RESTRICT forbids the operation {operation}"
        return (f"URINGLOOP_RESTRICT forbids IORING_OP_{name.upper()}; to allow it: "
                f"URINGLOOP_RESTRICT={os.environ.get('URINGLOOP_RESTRICT', '1')},{name}")
    if flags & ~OPS_FLAGS:
        return f"URINGLOOP_RESTRICT forbids the flags {flags & ~OPS_FLAGS:#x} of an entry"
    return None
