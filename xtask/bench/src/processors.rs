//! The processors on which threads run: threads that wake one another are compared in the same places.
//!
//! A thread that wakes one on another processor pays for it, several times as much in a virtual machine, and which
//! processors two threads are on is the scheduler's choice. On Linux it is made here; elsewhere there is one place, and
//! the choice stays the scheduler's.

use anyhow::{Context as _, Result};

/// The processors that this thread may run on.
pub fn allowed() -> Result<Vec<usize>> {
    #[cfg(target_os = "linux")]
    {
        use rustix::thread::CpuSet;
        let set = rustix::thread::sched_getaffinity(None).context("the processors are not known")?;
        Ok((0..CpuSet::MAX_CPU).filter(|processor| set.is_set(*processor)).collect())
    }
    #[cfg(not(target_os = "linux"))]
    Ok(vec![0])
}

/// Has this thread run on some processors only.
pub fn stay(processors: &[usize]) -> Result<()> {
    put(0, processors)
}

/// Has all threads that this process has now run on some processors only.
pub fn keep(process: u32, processors: &[usize]) -> Result<()> {
    let tasks = format!("/proc/{process}/task");
    for task in std::fs::read_dir(&tasks).with_context(|| format!("cannot read {tasks}"))? {
        let task = task?.file_name().to_string_lossy().parse().context("a task has no number")?;
        // A thread that has ended in between is on none.
        let _ = put(task, processors);
    }
    Ok(())
}

/// Has a thread run on some processors only; 0 is the calling one.
#[cfg(target_os = "linux")]
fn put(thread: i32, processors: &[usize]) -> Result<()> {
    let mut set = rustix::thread::CpuSet::new();
    processors.iter().for_each(|processor| set.set(*processor));
    Ok(rustix::thread::sched_setaffinity(rustix::thread::Pid::from_raw(thread), &set)?)
}

#[cfg(not(target_os = "linux"))]
fn put(_: i32, _: &[usize]) -> Result<()> {
    Ok(())
}
