//! What the programs do of a window that was ordered: whether one records is waited for.

use std::collections::BTreeSet;
use std::time::Instant;

use flopwatch_tracer_file::process::{Phase, Process};

use super::{ANSWER_TIMEOUT, CudaWindow, END_PAUSE, Error, Refused, driver};

/// How the programs that are there began a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begun {
    /// Processes that record.
    pub recording: usize,
    /// Those that do not, and why.
    pub refused: Vec<Refused>,
    /// What `cuDriverGetVersion` said to those that followed.
    pub drivers: BTreeSet<u32>,
}

impl CudaWindow {
    /// Waits until each program that is there records or says why it does not, three seconds at
    /// most. What they record meanwhile is drained.
    ///
    /// # Errors
    ///
    /// When the programs' file was damaged, what is drained cannot be written, or nobody is there.
    pub fn await_begin(&mut self) -> Result<Begun, Error> {
        let begin = Instant::now();
        loop {
            self.drain.drain()?;
            let followed = self.look()?;
            let is_there = !followed.is_empty();
            if (is_there && !self.is_awaited()?) || begin.elapsed() >= ANSWER_TIMEOUT {
                if !is_there {
                    return Err(Error::Nobody);
                }
                return Ok(self.begun(&followed));
            }
            std::thread::park_timeout(END_PAUSE);
        }
    }

    /// Whether a program that runs has not followed the order yet.
    fn is_awaited(&mut self) -> Result<bool, Error> {
        let mut all = self.drain.processes()?;
        all.retain(|(_, process)| {
            let is_over = matches!(process.phase, Phase::Stuck | Phase::Replaced);
            let is_underway = matches!(process.phase, Phase::Waiting | Phase::Opening);
            !is_over && (process.generation != self.generation || is_underway)
        });
        Ok(all.iter().any(|(_, process)| (self.is_alive)(process)))
    }

    fn begun(&self, followed: &[(usize, Process)]) -> Begun {
        let recording = followed.iter().filter(|(_, process)| process.phase == Phase::Recording);
        Begun {
            recording: recording.count(),
            refused: self.refusals(),
            drivers: followed.iter().filter_map(|(_, process)| driver(process)).collect(),
        }
    }
}
