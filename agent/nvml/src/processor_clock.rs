//! What a thread's work costs: its own processor time, which waiting and others' work do not add
//! to.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A stopwatch of the calling thread's processor time. Read it on the thread that started it.
#[derive(Clone, Copy, Debug)]
pub struct ProcessorClock {
    begin: Duration,
}

impl ProcessorClock {
    /// Starts it.
    pub fn start() -> Self {
        Self { begin: now() }
    }

    /// Processor time since the start.
    pub fn elapsed(self) -> Duration {
        now().saturating_sub(self.begin)
    }
}

fn now() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_counted_and_waiting_is_not() {
        let clock = ProcessorClock::start();
        let (sender, receiver) = std::sync::mpsc::sync_channel::<()>(1);
        receiver.recv_timeout(Duration::from_millis(60)).unwrap_err();
        assert!(clock.elapsed() < Duration::from_millis(40), "{:?}", clock.elapsed());
        while clock.elapsed() < Duration::from_millis(5) {
            std::hint::spin_loop();
        }
        drop(sender);
    }
}
