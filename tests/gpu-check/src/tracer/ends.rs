//! Programs that end in a window: they end as they do without the tracer, and what was written
//! stays to be read.

use std::os::unix::process::ExitStatusExt as _;
use std::time::Duration;

use anyhow::Result;
use flopwatch_tracer_file::process::Count;
use flopwatch_tracer_file::wanted::{GraphLevel, Kinds};

use super::item::{Ended, Found};
use super::place::{Place, Setup};
use super::tally::Tally;
use super::until::Until;
use crate::graft::program::pause;

/// Programs that end in each way.
const ROUNDS: u64 = 5;
const LAUNCHES: u64 = 100_000;
/// How long a program runs before it is killed.
const RUN_TIME: Duration = Duration::from_millis(400);
const DRAIN_INTERVAL: Duration = Duration::from_millis(5);

/// The ways: what is told, the exit code, the signal.
const WAYS: [(&str, Option<i32>, Option<i32>); 3] = [
    ("exit 7", Some(7), None),
    ("abort", None, Some(6)),
    ("kill", None, Some(9)),
];

/// Has programs end in a window.
pub(super) fn in_window(setup: &Setup, until: Until, found: &mut Found) -> Result<Ended> {
    for (way, code, signal) in WAYS {
        let (mut recorded, mut held) = (0, 0_u64);
        for _ in 0..ROUNDS {
            let place = Place::new(setup.newest()?)?;
            let (mut program, mut agent) = place.begin(setup.bare_command(), until)?;
            let mut tally = Tally::default();
            agent.begin(Kinds::KERNELS, GraphLevel::Whole, until)?;
            if way == "kill" {
                program.ask("run", "running", until)?;
                let end = until.or_after(RUN_TIME);
                while end.left().is_some() {
                    agent.drain(&mut tally)?;
                    pause(DRAIN_INTERVAL);
                }
                program.kill()?;
            } else {
                program.counted(&format!("launch {LAUNCHES}"), "launched", until)?;
                program.tell(way)?;
            }
            let status = program.ended(until)?;
            found.must((status.code(), status.signal()) == (code, signal), || {
                format!("{way}: the program ended with {status}")
            });
            agent.drain(&mut tally)?;
            let left = agent.process()?;
            let written = left.count(Count::Records);
            held = held.saturating_add(left.held);
            found.must(tally.kernels >= written, || {
                format!("{way}: {} of {written} records are read", tally.kernels)
            });
            found.must(tally.nonsense == 0, || {
                format!("{way}: {} slots make no sense", tally.nonsense)
            });
            recorded += tally.kernels;
        }
        found.figure(&format!("records of {ROUNDS} programs, {way}"), recorded);
        found.figure(&format!("buffers that CUPTI still had of them, {way}"), held);
        found.must(recorded > 0, || format!("{way}: nothing was recorded"));
    }
    Ok(Ended::Done)
}
