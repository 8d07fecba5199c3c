//! Gives memory that a long-running program has freed back to the system.
//!
//! glibc does so by itself only at the end of a heap. Behind one small allocation that lives, it keeps whatever was freed before it: of the 33 MB of an
//! agent that had served 48 windows, 5.5 were in use.
#![allow(unsafe_code, reason = "no safe interface trims the heap")]

use std::time::Duration;

use nix::libc;
use tokio::time::{MissedTickBehavior, interval};

/// Time between two trims: the walk over a heap of tens of megabytes takes about a millisecond.
pub const EVERY: Duration = Duration::from_mins(1);

/// [Trims](trim) this program's heap once per [`EVERY`]. Never resolves; may be dropped at any time.
pub async fn keep_trimmed() {
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        trim();
    }
}

/// Gives every whole free page of every heap of this program back. Each heap is locked while it is walked.
pub fn trim() {
    // SAFETY: the call takes the number of bytes to keep at the heap's end, and touches only memory that glibc holds as free.
    unsafe { libc::malloc_trim(0) };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of this program in memory (proc_pid_statm(5)).
    fn resident() -> usize {
        let facts = std::fs::read_to_string("/proc/self/statm").unwrap();
        facts.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
    }

    #[tokio::test(start_paused = true)]
    async fn freed_memory_between_what_lives_goes_back_within_a_minute() {
        const BYTES: usize = 64 << 20;
        let trimming = tokio::spawn(keep_trimmed());
        tokio::task::yield_now().await;
        let mut pieces: Vec<Vec<u8>> = (0..BYTES >> 10).map(|_| vec![1; 1 << 10]).collect();
        let mut at = 0;
        pieces.retain(|_| {
            at += 1;
            at % 256 == 0
        });
        let before = resident();
        assert!(before > BYTES / 2, "glibc keeps what is freed: {before}");
        tokio::time::sleep(EVERY * 2).await;
        let after = resident();
        assert!(after < before - BYTES / 2, "from {before} to {after}");
        assert_eq!(pieces.len(), BYTES >> 18);
        trimming.abort();
    }
}
