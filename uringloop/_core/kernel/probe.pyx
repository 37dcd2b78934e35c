# The probe of the kernel: the io_uring features it offers, minus those switched off, or why it refuses io_uring. It asks
# the kernel itself, once per process: distributions backport features, so the version says little. The rings that it
# makes for that don't outlive the probe.
import errno as errno_module
import os
import socket

from libc.string cimport memset

from uringloop._core.kernel.abi cimport (
    IORING_FEAT_CQE_SKIP, IORING_FEAT_EXT_ARG, IORING_FEAT_MIN_TIMEOUT, IORING_FEAT_NODROP, IORING_FEAT_NO_IOWAIT,
    IORING_FEAT_SUBMIT_STABLE, IORING_OP_EPOLL_WAIT, IORING_OP_FTRUNCATE, IORING_OP_SEND_ZC, IORING_OP_WAITID,
    IORING_REGISTER_PROBE, IORING_REGISTER_RESTRICTIONS, IORING_RESTRICTION_SQE_OP, IORING_SETUP_COOP_TASKRUN,
    IORING_SETUP_DEFER_TASKRUN, IORING_SETUP_NO_SQARRAY, IORING_SETUP_R_DISABLED, IORING_SETUP_SINGLE_ISSUER,
    IORING_SETUP_SUBMIT_ALL, IORING_SETUP_TASKRUN_FLAG, IO_URING_OP_SUPPORTED, io_uring_probe, io_uring_restriction, ur_io_uring_register,
)
from uringloop._core.kernel.libc cimport EACCES, EINVAL, ENOSYS, EPERM
from uringloop._core.kernel.ring cimport Ring, ring_close, ring_open
from uringloop._core.lifetime.guard cimport URINGLOOP_DEBUG

# Every probed feature has a switch: URINGLOOP_DISABLE=name,name turns features off, so that tests on a new kernel can
# take the path of an old one.
SWITCHES = (
    "defer_taskrun", "single_issuer", "taskrun_flag", "coop_taskrun", "no_sqarray", "submit_all",
    "registered_ring", "abs_timer", "no_iowait", "quiet_send", "buffer_ring", "multishot_recv",
    "multishot_accept", "waitid", "epoll_wait", "ftruncate", "fixed_buffers", "udp_segment",
    "restrictions",
)

cdef enum:
    CAP_IPC_LOCK = 14
    UDP_SEGMENT = 103  # not in every libc's headers, nor in the socket module

cdef KernelFeatures _kernel_features
cdef bint _asked = False
cdef Sizes _sizes

cdef extern from *:
    """
    static const uint32_t ur_required_features = IORING_FEAT_NODROP | IORING_FEAT_SUBMIT_STABLE | IORING_FEAT_EXT_ARG;
    """
    const uint32_t ur_required_features


cdef Sizes *sizes() except NULL:
    if _sizes.entries == 0:
        tiny = os.environ.get("URINGLOOP_TINY", "1" if URINGLOOP_DEBUG else "0") not in ("", "0")
        _sizes.completions = 8 if tiny else 4096
        _sizes.buffers = 4 if tiny else 64
        _sizes.buffer_size = 4096 if tiny else 65536
        _sizes.send = 100000 if tiny else 1 << 30
        _sizes.entries = 4 if tiny else 256
    return &_sizes


cdef KernelFeatures *kernel_features() except NULL:
    """The features that this kernel offers. Raises OSError if the kernel is only short of something (memory, descriptors):
    that is a temporary error, not a refusal, and the next call probes again.

    Code that needs no ring must not call this: a program that chose epoll may run under a seccomp filter that kills a
    process for io_uring_setup."""
    global _asked
    if not _asked:
        _ask()
        _asked = True
    return &_kernel_features


cdef _ask():
    global _kernel_features
    cdef KernelFeatures found  # completed before it is published: two threads may probe at once
    cdef Ring ring
    cdef int err
    cdef uint32_t flags = 0
    disabled = switched_off()
    memset(&found, 0, sizeof(found))
    for flags in _flag_sets(disabled):
        err = ring_open(&ring, 4, 8, flags)
        if err != -EINVAL:
            break
    if err in (-EPERM, -EACCES, -ENOSYS, -EINVAL):
        found.refused = -err
        _kernel_features = found
        return
    if err < 0:
        raise OSError(-err, f"io_uring_setup: {os.strerror(-err)}")
    found.setup_flags = flags
    found.features = ring.features
    if ring.features & ur_required_features != ur_required_features:
        found.refused = ENOSYS
    found.registered_ring = "registered_ring" not in disabled
    # ABS_TIMER came with 6.12, which reports no bit of its own: MIN_TIMEOUT is of the same release.
    found.abs_timer = bool(ring.features & IORING_FEAT_MIN_TIMEOUT) and "abs_timer" not in disabled
    found.no_iowait = bool(ring.features & IORING_FEAT_NO_IOWAIT) and "no_iowait" not in disabled
    found.quiet_send = bool(ring.features & IORING_FEAT_CQE_SKIP) and "quiet_send" not in disabled
    # Multishot receive and buffer rings have no feature bit. SEND_ZC came with multishot receive (6.0), after buffer rings
    # and multishot accept (5.19), so its presence proves all of them.
    modern = _operation_offered(&ring, IORING_OP_SEND_ZC)
    if not modern:
        found.refused = ENOSYS
    if found.refused:
        ring_close(&ring)
        _kernel_features.refused = found.refused  # all other fields stay 0: without a ring, it offers no features
        return
    found.buffer_ring = modern and "buffer_ring" not in disabled
    found.multishot_recv = found.buffer_ring and "multishot_recv" not in disabled
    found.multishot_accept = modern and "multishot_accept" not in disabled
    found.ftruncate = _operation_offered(&ring, IORING_OP_FTRUNCATE) and "ftruncate" not in disabled
    # Sparse tables came with 5.19, too.
    found.fixed_buffers = modern and "fixed_buffers" not in disabled
    found.waitid = _operation_offered(&ring, IORING_OP_WAITID) and "waitid" not in disabled
    # Without DEFER_TASKRUN the kernel could collect events outside the loop's own enter, and a callback could handle a
    # descriptor's data before the loop reports the event.
    found.epoll_wait = (_operation_offered(&ring, IORING_OP_EPOLL_WAIT) and found.setup_flags & IORING_SETUP_DEFER_TASKRUN != 0
                        and "epoll_wait" not in disabled)
    found.restrictions = _can_be_restricted(&ring) and "restrictions" not in disabled
    ring_close(&ring)
    _kernel_features = found


def _flag_sets(disabled):
    """The sets of ring flags to try, the best first, the last with hardly any."""
    cdef uint32_t common = IORING_SETUP_R_DISABLED
    cdef uint32_t best = common
    cdef uint32_t no_defer = common
    # Another thread cannot enter a SINGLE_ISSUER ring, so the loop has to leave it when it changes threads; only
    # DEFER_TASKRUN makes that safe.
    if "single_issuer" not in disabled and "defer_taskrun" not in disabled:
        best |= IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN
    if "coop_taskrun" not in disabled:
        no_defer |= IORING_SETUP_COOP_TASKRUN
        if not best & IORING_SETUP_DEFER_TASKRUN:
            best |= IORING_SETUP_COOP_TASKRUN
    if "taskrun_flag" not in disabled and best & (IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_COOP_TASKRUN):
        best |= IORING_SETUP_TASKRUN_FLAG
    if "submit_all" not in disabled:
        best |= IORING_SETUP_SUBMIT_ALL
        no_defer |= IORING_SETUP_SUBMIT_ALL
    sets = [best, no_defer, common]
    if "no_sqarray" not in disabled:
        sets.insert(0, best | IORING_SETUP_NO_SQARRAY)
    return sets


cdef bint _operation_offered(Ring *ring, int opcode) noexcept:
    cdef io_uring_probe answer
    memset(&answer, 0, sizeof(answer))
    if ur_io_uring_register(ring.fd, IORING_REGISTER_PROBE, &answer, 256) < 0:
        return False
    return opcode <= answer.last_op and answer.ops[opcode].flags & IO_URING_OP_SUPPORTED != 0


cdef bint _can_be_restricted(Ring *ring) noexcept:
    """Restricts the ring itself, so call this last."""
    cdef io_uring_restriction only_nop
    memset(&only_nop, 0, sizeof(only_nop))
    only_nop.opcode = IORING_RESTRICTION_SQE_OP
    return ur_io_uring_register(ring.fd, IORING_REGISTER_RESTRICTIONS, &only_nop, 1) == 0


def restricted():
    """Whether URINGLOOP_RESTRICT asks for rings that take only the operations that uringloop uses."""
    return os.environ.get("URINGLOOP_RESTRICT", "") not in ("", "0")


cdef restriction():
    """The function that restricts a new ring, if URINGLOOP_RESTRICT asks for it, otherwise None. Raises ValueError for an
    unknown name in it."""
    if not restricted():
        return None
    from uringloop._core.kernel.restriction import added, restrict  # few programs need it

    added()
    return restrict


def switched_off():
    """The features named in URINGLOOP_DISABLE. Raises ValueError for an unknown name."""
    names = {name.strip() for name in os.environ.get("URINGLOOP_DISABLE", "").split(",") if name.strip()}
    unknown = names.difference(SWITCHES)
    if unknown:
        raise ValueError(f"URINGLOOP_DISABLE names no such feature: {', '.join(sorted(unknown))}; "
                         f"there are {', '.join(SWITCHES)}")
    return names


cdef bint cuts_datagrams():
    """Whether one message may consist of several datagrams (UDP_SEGMENT; each socket is asked whether it supports that).
    Doesn't depend on io_uring, so a loop without a ring may call it, too."""
    return "udp_segment" not in switched_off()


def _kernel_cuts_datagrams():
    if not cuts_datagrams():
        return False
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
            asked.getsockopt(socket.IPPROTO_UDP, UDP_SEGMENT)
    except OSError:
        return False
    return True


def refusal():
    """None if io_uring can be used, otherwise (errno, cause, remedy)."""
    cdef int refused = kernel_features().refused
    if not refused:
        if restriction() is not None and not kernel_features().restrictions:
            return (ENOSYS, "URINGLOOP_RESTRICT asks for restricted rings, which this kernel does not offer, or "
                    "URINGLOOP_DISABLE switches off", "use a kernel with IORING_REGISTER_RESTRICTIONS, or unset "
                    "URINGLOOP_RESTRICT")
        return None
    name = errno_module.errorcode.get(refused, str(refused))
    if refused == ENOSYS:
        return (refused, f"the kernel has no io_uring, or one older than 6.1, or a sandbox hides it ({name})",
                "use Linux 6.1 or later; in a container allow io_uring_setup, io_uring_enter and "
                "io_uring_register in the seccomp profile; gVisor offers none")
    try:
        with open("/proc/sys/kernel/io_uring_disabled") as setting:
            disabled = setting.read().strip()
    except OSError:
        disabled = "0"
    if disabled == "0":
        return (refused, f"a seccomp or security policy refuses io_uring_setup ({name})",
                "allow io_uring_setup, io_uring_enter and io_uring_register in the container's seccomp "
                "profile (Docker and containerd refuse them by default)")
    return (refused, f"kernel.io_uring_disabled is {disabled} ({name})",
            "set kernel.io_uring_disabled to 0, or to 1 and add this user's group to kernel.io_uring_group")


cdef ring_error(int err):
    """The error of a ring that could not be made."""
    error = OSError(err, f"io_uring_setup: {os.strerror(err)}")
    short = locked_memory(error)
    return OSError(err, f"{error.strerror}: {short[1]}. To allow it: {short[2]}") if short else error


cpdef locked_memory(error):
    """The same for an OSError that means that no ring could be made because of the user's limit of locked memory, in which
    kernels before 5.12, and from 6.14 on, count rings. None for any other error."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if error.errno != errno_module.ENOMEM or soft == resource.RLIM_INFINITY or _may_lock_any():
        return None
    return (error.errno, f"this user's rings take more than the {soft // 1024} KB of memory that RLIMIT_MEMLOCK lets "
            "all processes of the user lock together (ENOMEM)",
            "raise the limit (ulimit -l, LimitMEMLOCK= in a unit of systemd, docker run --ulimit memlock=), "
            "or give the program CAP_IPC_LOCK")


def _may_lock_any():
    """Whether this process has CAP_IPC_LOCK, which counts only in the machine's initial user namespace."""
    try:
        with open("/proc/self/status") as status, open("/proc/self/uid_map") as users:
            mine = [line.split()[1] for line in status if line.startswith("CapEff:")]
            return bool(int(mine[0], 16) >> CAP_IPC_LOCK & 1) and users.read().split() == ["0", "0", "4294967295"]
    except (OSError, IndexError, ValueError):
        return False


def locked_by_a_ring():
    """How many bytes of RLIMIT_MEMLOCK the ring of a loop takes; 0 if the kernel doesn't count rings there, or not for this
    user. To find out, it sets the limit of this process to 0 for a moment: only for the doctor, as no loop can be made
    meanwhile."""
    import resource

    cdef Ring ring
    cdef size_t page = os.sysconf("SC_PAGESIZE"), size
    cdef int err = ring_open(&ring, sizes().entries, sizes().completions, kernel_features().setup_flags)
    if err < 0:
        raise OSError(-err, f"io_uring_setup: {os.strerror(-err)}")
    size = sum((length + page - 1) // page * page for length in (ring.rings_size, ring.cq_size, ring.sqes_size))
    ring_close(&ring)
    limits = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, limits[1]))
    try:
        err = ring_open(&ring, 4, 8, kernel_features().setup_flags)
    finally:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, limits)
    if err == 0:
        ring_close(&ring)
        return 0
    return size


def offered():
    """The features that the core will use here, by name; for the doctor and the tests."""
    cdef KernelFeatures found
    memset(&found, 0, sizeof(found))
    try:
        found = kernel_features()[0]
    except OSError:
        pass  # the kernel is short of something: no ring, and none of its features
    flags = {
        "single_issuer": IORING_SETUP_SINGLE_ISSUER, "defer_taskrun": IORING_SETUP_DEFER_TASKRUN,
        "coop_taskrun": IORING_SETUP_COOP_TASKRUN, "taskrun_flag": IORING_SETUP_TASKRUN_FLAG,
        "submit_all": IORING_SETUP_SUBMIT_ALL, "no_sqarray": IORING_SETUP_NO_SQARRAY,
    }
    answer = {name: bool(found.setup_flags & bit) for name, bit in flags.items()}
    answer.update(
        registered_ring=bool(found.registered_ring), abs_timer=bool(found.abs_timer),
        no_iowait=bool(found.no_iowait), quiet_send=bool(found.quiet_send),
        buffer_ring=bool(found.buffer_ring), multishot_recv=bool(found.multishot_recv),
        multishot_accept=bool(found.multishot_accept), waitid=bool(found.waitid), epoll_wait=bool(found.epoll_wait),
        ftruncate=bool(found.ftruncate), fixed_buffers=bool(found.fixed_buffers), udp_segment=_kernel_cuts_datagrams(),
        restrictions=bool(found.restrictions),
    )
    return answer
