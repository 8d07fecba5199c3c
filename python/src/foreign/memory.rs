//! How much memory the child may take: as much as it has, its caller has beside it while the
//! capture comes over.

use std::fs::read_to_string;

/// Most, in bytes: what the engine's own limits want.
const MAX_BYTES: u64 = 8 << 30;
/// Least, in bytes: the interpreter, the module and threads are there before any file is read.
const LEAST_BYTES: u64 = 256 << 20;
/// Where a container finds the bound of its own cgroup, in both versions of the file system.
const OWN_LIMIT: [&str; 2] = [
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
];

/// Bytes: what was asked for, else half of what is free.
pub(super) fn bytes(asked_mib: Option<u64>) -> u64 {
    match asked_mib {
        Some(mib) => mib.saturating_mul(1 << 20),
        None => (free() / 2).clamp(LEAST_BYTES, MAX_BYTES),
    }
}

/// What of the machine's memory is free, or less where the container may use less.
fn free() -> u64 {
    let texts = OWN_LIMIT.iter().filter_map(|path| read_to_string(path).ok());
    // "max" is no number; version 1 writes a number near 2^63 where there is no bound.
    let limits = texts.filter_map(|text| text.trim().parse::<u64>().ok());
    limits.chain(available()).min().unwrap_or(u64::MAX)
}

fn available() -> Option<u64> {
    let table = read_to_string("/proc/meminfo").ok()?;
    let line = table.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}
