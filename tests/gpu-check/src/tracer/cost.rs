//! What the tracer costs short kernels and graphs: without it, before a window, in one, and what is
//! left behind it. The figures are results; what must hold is that every launch is there.

use anyhow::Result;
use flopwatch_tracer_file::wanted::{GraphLevel, Kinds};

use super::agent::Agent;
use super::item::{Ended, Found};
use super::place::{Place, Setup};
use super::program::{Program, ns_per_launch};
use super::tally::Tally;
use super::until::Until;

/// Launches of a graph that are counted.
const REPLAYS: u64 = 200;

/// Launches of an empty kernel, one after the other.
pub(super) fn eager(setup: &Setup, until: Until, found: &mut Found) -> Result<Ended> {
    let line = format!("pace {}", setup.pace_ms);
    without(setup, &[], &line, until, found)?;
    let place = Place::new(setup.newest()?)?;
    let (mut program, mut agent) = place.begin(setup.bare_command(), until)?;
    found.figure("before a window ns", program.pace(&line, until)?);
    for (name, kinds) in [("kernels", Kinds::KERNELS), ("everything", Kinds::ALL)] {
        let levels = Levels {
            name,
            kinds,
            graphs: GraphLevel::Whole,
        };
        let before = agent.lost()?.overwritten;
        let (tally, launches) = in_window(&mut program, &mut agent, &levels, &line, until, found)?;
        let lost = agent.lost()?;
        let late = lost.overwritten.saturating_sub(before);
        found.figure(&format!("records of {name} not read in time"), late);
        let is_whole = tally.kernels == launches || (late > 0 && tally.kernels < launches);
        found.must(is_whole, || {
            format!("{} records of {launches} launches, {lost:?}", tally.kernels)
        });
    }
    Ok(Ended::Done)
}

/// Launches of a graph, as wholes and by their nodes.
pub(super) fn graphs(setup: &Setup, until: Until, found: &mut Found) -> Result<Ended> {
    let (line, graph) = (
        format!("replay_pace {}", setup.pace_ms),
        format!("graph {}", setup.nodes),
    );
    without(setup, &[graph.as_str()], &line, until, found)?;
    let place = Place::new(setup.newest()?)?;
    let (mut program, mut agent) = place.begin(setup.bare_command(), until)?;
    program.ask(&graph, "graph", until)?;
    found.figure("before a window ns", program.pace(&line, until)?);
    for (name, graphs) in [("wholes", GraphLevel::Whole), ("nodes", GraphLevel::Nodes)] {
        let kinds = Kinds::KERNELS.with(Kinds::GRAPHS);
        let levels = Levels { name, kinds, graphs };
        in_window(&mut program, &mut agent, &levels, &line, until, found)?;
        let mut tally = Tally::default();
        agent.begin(kinds, graphs, until)?;
        let replay = format!("replay {REPLAYS}");
        let answer = agent.drain_while(&mut program, &replay, &mut tally, until)?;
        let kernels = REPLAYS * setup.nodes;
        found.must(answer == format!("replayed {REPLAYS} {kernels}"), || answer);
        agent.end(until)?;
        agent.drain(&mut tally)?;
        match graphs {
            GraphLevel::Whole => found.must_equal("launches of graphs", tally.graphs, REPLAYS),
            GraphLevel::Nodes => found.must_equal("nodes of graphs", tally.kernels, kernels),
        }
    }
    Ok(Ended::Done)
}

/// The pace of a program that has no tracer.
fn without(setup: &Setup, before: &[&str], line: &str, until: Until, found: &mut Found) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut program = Program::start(setup.bare_command(), folder.path())?;
    program.must_begin(until)?;
    for line in before {
        program.tell(line)?;
        program.line(until)?;
    }
    found.figure("without the tracer ns", program.pace(line, until)?);
    Ok(())
}

/// What a window records.
struct Levels {
    name: &'static str,
    kinds: Kinds,
    graphs: GraphLevel,
}

/// The pace in a window, and behind it; what was recorded, and how many launches that were.
fn in_window(
    program: &mut Program,
    agent: &mut Agent,
    levels: &Levels,
    line: &str,
    until: Until,
    found: &mut Found,
) -> Result<(Tally, u64)> {
    let mut tally = Tally::default();
    agent.begin(levels.kinds, levels.graphs, until)?;
    let answer = agent.drain_while(program, line, &mut tally, until)?;
    agent.end(until)?;
    agent.drain(&mut tally)?;
    let numbers: Vec<u64> = answer.split(' ').filter_map(|word| word.parse().ok()).collect();
    let name = levels.name;
    found.figure(&format!("in a window of {name} ns"), ns_per_launch(&numbers)?);
    found.figure(&format!("behind a window of {name} ns"), program.pace(line, until)?);
    Ok((tally, numbers.first().copied().unwrap_or(0)))
}
