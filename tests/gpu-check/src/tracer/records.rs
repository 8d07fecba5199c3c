//! Tens of millions of records of graphs' nodes in one window, and what they take of the GPU's
//! memory: with another tool their times broke after 25 million.

use std::time::Duration;

use anyhow::Result;
use flopwatch_tracer_file::wanted::{GraphLevel, Kinds};

use super::item::{Ended, Found};
use super::place::{Place, Setup};
use super::tally::Tally;
use super::until::{Until, microseconds};

/// Kernels between two looks at the memory.
const ROUND: u64 = 1_000_000;
/// What is left for the end of the window.
const END_TIME: Duration = Duration::from_secs(25);

/// As many records as come in time.
pub(super) fn many(setup: &Setup, until: Until, found: &mut Found) -> Result<Ended> {
    let place = Place::new(setup.newest()?)?;
    let (mut program, mut agent) = place.begin(setup.bare_command(), until)?;
    program.ask(&format!("graph {}", setup.nodes), "graph", until)?;
    let free = program.free_bytes(until)?;
    let (mut tally, mut launched, mut most) = (Tally::default(), 0, 0);
    let replays = (ROUND.min(setup.records) / setup.nodes.max(1)).max(1);
    agent.begin(Kinds::KERNELS, GraphLevel::Nodes, until)?;
    while launched < setup.records && until.left().is_some_and(|left| left > END_TIME) {
        agent.drain_while(&mut program, &format!("replay {replays}"), &mut tally, until)?;
        launched += replays * setup.nodes;
        most = most.max(free.saturating_sub(program.free_bytes(until)?));
    }
    if launched == 0 {
        return Ok(Ended::NotRun("too little time was left".to_owned()));
    }
    found.figure("end us", microseconds(agent.end(until)?));
    agent.drain(&mut tally)?;
    let lost = agent.lost()?;
    found.figure("kernels launched", launched);
    found.figure("records", tally.kernels);
    found.figure("without times", lost.timeless);
    found.figure("dropped by CUPTI", lost.dropped);
    found.figure("not read in time", lost.overwritten);
    found.figure("GPU memory taken MiB", most >> 20);
    let left = free.saturating_sub(program.free_bytes(until)?);
    found.figure("GPU memory that stays taken MiB", left >> 20);
    if launched < setup.records {
        found.say(format!(
            "the time was over after {launched} of {} kernels",
            setup.records
        ));
    }
    found.must(lost.timeless == 0 && lost.dropped == 0, || format!("{lost:?}"));
    found.must_equal(
        "records, with those that are counted as lost",
        tally.kernels + lost.overwritten,
        launched,
    );
    Ok(Ended::Done)
}
