//! The scheduling attributes of the calling thread: sched_getattr(2) and sched_setattr(2), which glibc does not wrap.

/// What the calling thread is scheduled by; `None` if the system does not say.
pub(crate) fn get() -> Option<libc::sched_attr> {
    let size = u32::try_from(size_of::<libc::sched_attr>()).ok()?;
    // SAFETY: it is made of integers, for which zeros are valid.
    let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes at most `size` bytes to `attributes`, which is as long as that and lives on.
    let result = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) };
    (result == 0).then_some(attributes)
}

/// Schedules the calling thread by them, which [`get`] returned. Returns `false` if the system refused; the thread then goes
/// on as it was. Takes no lock and no memory, so a signal handler may call both.
pub(crate) fn set(attributes: &libc::sched_attr) -> bool {
    // SAFETY: the kernel only reads `attributes`, whose `size` the call before has filled in.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, std::ptr::from_ref(attributes), 0) == 0 }
}

/// Whether threads that are scheduled by them go before all ordinary ones.
pub(crate) fn is_realtime(attributes: &libc::sched_attr) -> bool {
    [libc::SCHED_RR, libc::SCHED_FIFO].contains(&attributes.sched_policy.cast_signed())
}
