# Lock: a mutex for tasks of any loops and for plain threads. Owns whether it is held, not by which task: any
# task or thread may release it, as with asyncio's. Strictly first come, first served; never free while a waiter is in line.
# For a lock that conditions share, lock_claims.pyx keeps the holder, because tasks may be destroyed in Condition.wait.
from uringloop._core.lifetime.guard cimport ur_guard_lock, ur_guard_unlock
from uringloop._core.handoff.wait cimport make_wait
from uringloop.sync.acquirable cimport Acquirable
from uringloop.sync.described cimport named, queued, title
from uringloop.sync.lock_claims cimport Claim, LockClaims


cdef class Lock(Acquirable):
    """asyncio.Lock for tasks of any loop, and with `with lock:` for plain threads as well."""

    cdef bint try_acquire(self) noexcept:
        if self.held:
            return False
        self.held = True
        return True

    cdef bint put_back(self) noexcept:
        cdef bint held = self.held
        self.held = False
        return held

    cdef str wait_name(self):
        return "Lock.acquire"

    cdef object collect(self, object value):
        return value if self.claims is None else self.hold(value)

    cdef object hold(self, object value):
        """Record the new holder. `value` is a Claim if the holder comes back from Condition.wait."""
        cdef LockClaims claims = self.claims
        cdef bint wanted = True
        try:
            claims.note_loop(self)
            if isinstance(value, Claim):
                wanted = (<Claim> value).end()
                value = True
            else:
                claims.hold()
        except BaseException:
            claims.release_hold()
            self.hand_on()
            raise
        if not wanted:
            claims.release_hold()
            self.hand_on()
        return value

    cdef int held_by_a_task(self) except -1:
        if self.claims is not None:
            self.claims.hold_unseen()
        return 0

    cdef int grantee_lost(self, object value) except -1:
        if isinstance(value, Claim):
            (<Claim> value).pass_on()
        return 0

    cdef int let_go(self) except -1:
        if self.claims is None or self.claims.let_go():
            _hand_on(self)
        return 0

    # For Condition

    def share(self):
        """A Condition starts to use this lock, which records its holder from now on. Returns the lock's LockClaims."""
        cdef LockClaims made = LockClaims()
        ur_guard_lock(&self.guard)
        if self.claims is None:
            self.claims = made
        ur_guard_unlock(&self.guard)
        return self.claims

    def release_to_wait(self):
        """Release the lock for a task that has made a claim."""
        if self.direct:
            _hand_on(self)
        else:
            self.release()

    def acquire_again(self, Claim claim):
        """Await the result to acquire the lock again and end the claim."""
        return make_wait(self, claim)

    def locked(self):
        return self.held

    def statistics(self):
        """{locked, waiting: now; waits, grants, cancels, passes: since it was made}."""
        return named(self, {"locked": self.held})

    def __repr__(self):
        return f"<{title(self, self.name)} {'locked' if self.held else 'unlocked'} {queued(self)}>"


cdef int _hand_on(Lock lock) except -1:
    if not lock.hand_on():
        raise RuntimeError("Lock is not acquired.")
    return 0
