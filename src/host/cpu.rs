//! CPUs: which there are, which this process may use, on which NUMA node they sit, and pinning a thread to one.
//!
//! Reads `/sys` and the affinity mask; starts no threads. Where `/sys` is missing (a container), every allowed CPU counts as
//! online and sits on node 0.

use std::fs;
use std::path::Path;

/// The longest CPU list read from `/sys`, in CPUs.
const CPUS_MAX: usize = 4096;

/// One CPU this process may run on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Cpu {
    /// The kernel's number.
    pub id: usize,
    /// The NUMA node it sits on.
    pub node: usize,
}

/// The CPUs that are online and that the affinity mask of the calling thread allows, by number.
pub fn allowed() -> Vec<Cpu> {
    let online = read_list(Path::new("/sys/devices/system/cpu/online"));
    let nodes = nodes(Path::new("/sys/devices/system/node"));
    let mut cpus: Vec<Cpu> = core_affinity::get_core_ids()
        .unwrap_or_default()
        .into_iter()
        .map(|core| core.id)
        .filter(|id| online.as_ref().is_none_or(|list| list.contains(id)))
        .map(|id| Cpu { id, node: nodes.iter().find(|(_, cpus)| cpus.contains(&id)).map_or(0, |(node, _)| *node) })
        .collect();
    cpus.sort_unstable();
    cpus
}

/// The CPUs of another machine, from their lists by NUMA node: `0-7` for one node, `0-31/32-63` for two. `None` for anything else.
pub fn described(text: &str) -> Option<Vec<Cpu>> {
    let mut cpus = Vec::new();
    for (node, list) in text.split('/').enumerate() {
        let ids = parse_list(list).filter(|ids| !ids.is_empty())?;
        cpus.extend(ids.into_iter().map(|id| Cpu { id, node }));
    }
    cpus.sort_unstable();
    cpus.windows(2).all(|pair| pair[0].id != pair[1].id).then_some(cpus)
}

/// The `auto` placement: all of `cpus` but the first, which is left to the system and to housekeeping; the only one when there is
/// one. The first CPU is the one left out because interrupts and the kernel's own work gather there.
pub fn auto(cpus: &[Cpu]) -> Vec<Cpu> {
    match cpus {
        [_, rest @ ..] if !rest.is_empty() => rest.to_vec(),
        few => few.to_vec(),
    }
}

/// Pins the calling thread to a CPU. `false` when the kernel refuses (the CPU is offline or not allowed).
#[must_use]
pub fn pin(id: usize) -> bool {
    core_affinity::set_for_current(core_affinity::CoreId { id })
}

/// Does something on a CPU, where that is allowed: memory first touched there lies on its NUMA node.
pub fn on<T: Send>(id: usize, body: impl FnOnce() -> T + Send) -> T {
    let here = || {
        // Where it is not allowed the memory lies elsewhere: slower, not wrong.
        let _ = pin(id);
        body()
    };
    match std::thread::scope(|scope| scope.spawn(here).join()) {
        Ok(value) => value,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// The NUMA nodes and their CPUs, from a directory of `node<N>/cpulist`.
fn nodes(directory: &Path) -> Vec<(usize, Vec<usize>)> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| {
            let node = entry.file_name().to_str()?.strip_prefix("node")?.parse().ok()?;
            Some((node, read_list(&entry.path().join("cpulist"))?))
        })
        .collect()
}

fn read_list(path: &Path) -> Option<Vec<usize>> {
    parse_list(&fs::read_to_string(path).ok()?)
}

/// The numbers of a kernel CPU list such as `0-3,8,10-11`; `None` when it is not one. An empty list is a node without CPUs.
fn parse_list(text: &str) -> Option<Vec<usize>> {
    let mut numbers = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        if last < first || last - first >= CPUS_MAX || numbers.len() > CPUS_MAX {
            return None;
        }
        numbers.extend(first..=last);
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_lists_are_read() {
        assert_eq!(parse_list("0-3,8,10-11\n"), Some(vec![0, 1, 2, 3, 8, 10, 11]));
        assert_eq!(parse_list("\n"), Some(vec![]));
        assert_eq!(parse_list("5"), Some(vec![5]));
        for bad in ["x", "3-1", "0-99999999999", "1-", "-", "0-18446744073709551615"] {
            assert_eq!(parse_list(bad), None, "{bad}");
        }
    }

    #[test]
    fn another_machine_is_described_by_the_lists_of_its_nodes() {
        let cpu = |id, node| Cpu { id, node };
        assert_eq!(described("0-1"), Some(vec![cpu(0, 0), cpu(1, 0)]));
        assert_eq!(described("0,2/1,3"), Some(vec![cpu(0, 0), cpu(1, 1), cpu(2, 0), cpu(3, 1)]));
        for bad in ["", "/", "0-1/", "0-1/1-2", "x"] {
            assert_eq!(described(bad), None, "{bad}");
        }
    }

    #[test]
    fn nodes_are_read_from_a_directory() {
        let directory = std::env::temp_dir().join(format!("tollgate-nodes-{}", std::process::id()));
        for (name, list) in [("node0", "0-1"), ("node1", "2,3"), ("power", "7")] {
            fs::create_dir_all(directory.join(name)).expect("a directory");
            fs::write(directory.join(name).join("cpulist"), list).expect("a file");
        }
        let mut found = nodes(&directory);
        found.sort();
        fs::remove_dir_all(&directory).expect("removed");
        assert_eq!(found, vec![(0, vec![0, 1]), (1, vec![2, 3])]);
    }

    #[test]
    fn auto_leaves_one_cpu_and_takes_at_least_one() {
        let cpu = |id| Cpu { id, node: 0 };
        assert_eq!(auto(&[cpu(0)]), vec![cpu(0)]);
        assert_eq!(auto(&[cpu(0), cpu(1)]), vec![cpu(1)]);
        assert_eq!(auto(&[cpu(0), cpu(1), cpu(5)]), vec![cpu(1), cpu(5)]);
        assert_eq!(auto(&[]), vec![]);
    }

    #[test]
    fn a_thread_can_be_pinned_to_an_allowed_cpu() {
        let cpus = allowed();
        let last = *cpus.last().expect("one CPU at least");
        assert_eq!(on(last.id, allowed), vec![last]);
        assert_eq!(allowed(), cpus, "the caller stays where it was");
    }
}
