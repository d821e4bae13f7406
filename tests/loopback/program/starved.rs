//! Whether the machine took the CPU away from what a test watches: by the kernel's own account, not by what is tested.

use super::gateway::{Watch, pause};
use std::collections::HashMap;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often the kernel's account is read.
const LOOK: Duration = Duration::from_millis(20);
/// A thread that was ready to run and waited so long was starved: a packet of the voice is as long, and half the shallowest buffer of a trunk.
const STARVED: Duration = Duration::from_millis(20);

/// Watches processes until it is asked.
pub struct CpuWatch {
    pids: Arc<Mutex<Vec<u32>>>,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<Duration>>,
}

impl CpuWatch {
    /// Over these processes.
    pub fn over(pids: &[u32]) -> CpuWatch {
        let (pids, ends) = (Arc::new(Mutex::new(pids.to_vec())), Arc::new(AtomicBool::new(false)));
        let (watched, over) = (Arc::clone(&pids), Arc::clone(&ends));
        CpuWatch { pids, ends, thread: Some(std::thread::spawn(move || longest_wait(&watched, &over))) }
    }

    /// And over this one, which has just been started.
    pub fn add(&self, pid: u32) {
        self.pids.lock().unwrap().push(pid);
    }

    /// For how long a thread waited for a CPU at the most, when that was long enough to starve it.
    pub fn starved(mut self) -> Option<Duration> {
        self.ends.store(true, Ordering::Relaxed);
        let longest = self.thread.take()?.join().unwrap();
        (longest >= STARVED).then_some(longest)
    }
}

impl Drop for CpuWatch {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
    }
}

/// The longest that a thread of these processes, or the watching one, waited for a CPU. What a hypervisor took away is in no account of
/// this kernel; the watching thread wakes late then.
fn longest_wait(pids: &Mutex<Vec<u32>>, ends: &AtomicBool) -> Duration {
    let mut accounts = HashMap::new();
    let mut longest = Duration::ZERO;
    while !ends.load(Ordering::Relaxed) {
        let watch = Watch::start();
        pause(LOOK);
        longest = longest.max(watch.elapsed().saturating_sub(LOOK));
        let pids = pids.lock().unwrap().clone();
        for (thread, waited) in pids.into_iter().flat_map(waits) {
            // What it waited before it was seen first is not known to have been at once.
            let before = accounts.insert(thread, waited).unwrap_or(waited);
            longest = longest.max(waited.saturating_sub(before));
        }
    }
    longest
}

/// For how long each thread of a process has waited for a CPU since it began: the second figure of its schedstat, in ns. The kernel adds a wait
/// when it ends.
fn waits(pid: u32) -> Vec<(String, Duration)> {
    let account = |entry: fs::DirEntry| {
        let text = fs::read_to_string(entry.path().join("schedstat")).ok()?;
        let waited = text.split(' ').nth(1)?.trim().parse().ok()?;
        Some((entry.file_name().to_string_lossy().into_owned(), Duration::from_nanos(waited)))
    };
    fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten().filter_map(account).collect()
}
