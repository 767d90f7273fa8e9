//! The heap of the process: memory that is free in it, given back to the system.

/// Gives back what was freed. The allocator keeps it otherwise, for each thread that ever allocated: after a start, which
/// reads and checks all features side by side and then drops what it read, that is a good part of the process.
///
/// It takes some milliseconds, in which no thread can allocate. Where the allocator is not glibc's, it does nothing.
pub fn give_back_free_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it takes no pointer, and may be called at any time by any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    /// Bytes of this process that no file has.
    fn anonymous() -> usize {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
    }

    #[test]
    fn what_was_freed_is_not_resident_any_more() {
        const PIECE: usize = 16 << 10;
        let mut pieces: Vec<Vec<u8>> = (0..2048).map(|_| vec![1; PIECE]).collect();
        // Something behind them is still in use, so the heap can't shrink at its end.
        let _last = std::hint::black_box(vec![1_u8; PIECE]);
        pieces.clear();
        let before = anonymous();
        super::give_back_free_memory();
        let after = anonymous();
        assert!(after + 1024 * PIECE < before, "{before} bytes before, {after} after");
    }
}
