//! Windows whose kernels are counted by the program and by the GPU: of each release, two hundred
//! one after the other, and beside CUDA's own events.

use anyhow::Result;
use flopwatch_tracer_file::process::Phase;
use flopwatch_tracer_file::wanted::{GraphLevel, Kinds};

use super::agent::{Agent, Lost, refusal};
use super::item::{Ended, Found};
use super::place::{Place, Release, Setup};
use super::program::Program;
use super::tally::{Tally, percentile};
use super::until::{Until, microseconds};

const LAUNCHES: u64 = 10_000;
const SWITCH_LAUNCHES: u64 = 50;
/// Copies, and memsets, of a window of everything.
const COPIES: u64 = 100;
/// Kernels beside events, of each length.
const SPINS: usize = 20;
/// How long they run, in ns.
const SPIN_NS: [u64; 3] = [100_000, 1_000_000, 10_000_000];
/// How much longer the time between two events may be than the kernel between them, in ns.
const EVENTS_NS: u64 = 100_000;
/// How much shorter it may be, in ns: events are read in steps of half a microsecond.
const EVENT_STEP_NS: u64 = 2_000;
/// A part of the names of the program's kernels.
const KERNEL: &str = "kernel";

/// A release as ours: every launch of a window is recorded, or the release is refused and the
/// program goes on.
pub(super) fn of_release(setup: &Setup, release: &Release, until: Until, found: &mut Found) -> Result<Ended> {
    let place = Place::new(release)?;
    let (mut program, mut agent) = place.begin(setup.bare_command(), until)?;
    if release.major() != setup.version / 1000 {
        // As the program's own: ours would not even be looked at.
        program.ask(&format!("load {}", release.path.display()), "loaded", until)?;
    }
    let free = program.free_bytes(until)?;
    let (process, took) = agent.try_begin(Kinds::KERNELS, GraphLevel::Whole, until)?;
    if process.phase != Phase::Recording {
        found.say(format!("refused: {}", refusal(&process)));
        let is_expected = release.major() != setup.version / 1000 && process.phase == Phase::Refused;
        found.must(is_expected, || {
            format!("the window is not recorded: {}", refusal(&process))
        });
        let counted = program.counted(&format!("launch {LAUNCHES}"), "launched", until)?;
        found.must_equal("kernels that ran beside the refusal", counted, LAUNCHES);
        return Ok(Ended::Done);
    }
    found.figure("first begin us", microseconds(took));
    found.figure("CUPTI's API version", u64::from(process.cupti_version));
    let mut tally = Tally::default();
    let line = format!("launch {LAUNCHES}");
    let answer = agent.drain_while(&mut program, &line, &mut tally, until)?;
    found.must(answer == format!("launched {LAUNCHES} {LAUNCHES}"), || answer);
    let taken = free.saturating_sub(program.free_bytes(until)?);
    found.figure("GPU memory taken in a window MiB", taken >> 20);
    found.figure("end us", microseconds(agent.end(until)?));
    agent.drain(&mut tally)?;
    found.must_equal("kernels", tally.kernels, LAUNCHES);
    names(&mut agent, &tally, found)?;
    let left = free.saturating_sub(program.free_bytes(until)?);
    found.figure("GPU memory that stays taken MiB", left >> 20);
    everything(&mut program, &mut agent, until, found)?;
    nothing_lost(&mut agent, found)
}

/// A second window, of every kind of records.
fn everything(program: &mut Program, agent: &mut Agent, until: Until, found: &mut Found) -> Result<()> {
    let mut tally = Tally::default();
    found.figure(
        "second begin us",
        microseconds(agent.begin(Kinds::ALL, GraphLevel::Whole, until)?),
    );
    program.ask(&format!("launch {LAUNCHES}"), "launched", until)?;
    program.ask(&format!("copy {COPIES}"), "copied", until)?;
    agent.end(until)?;
    agent.drain(&mut tally)?;
    found.must_equal("kernels beside everything else", tally.kernels, LAUNCHES);
    found.must_equal("memsets", tally.sets, COPIES);
    // What the program counts with is copied, too.
    found.must(tally.copies >= COPIES, || {
        format!("copies: {} of {COPIES}", tally.copies)
    });
    let calls = LAUNCHES + 2 * COPIES;
    found.must(tally.calls >= calls, || format!("calls: {} of {calls}", tally.calls));
    Ok(())
}

fn names(agent: &mut Agent, tally: &Tally, found: &mut Found) -> Result<()> {
    for number in &tally.names {
        let name = agent.name(*number)?.unwrap_or_default();
        found.must(name.contains(KERNEL), || format!("a kernel's name is {name:?}"));
    }
    Ok(())
}

fn nothing_lost(agent: &mut Agent, found: &mut Found) -> Result<Ended> {
    let lost = agent.lost()?;
    // What they held is in the counts.
    found.figure("buffers that came late or were thrown away", lost.buffers);
    let records = Lost { buffers: 0, ..lost };
    found.must(records == Lost::default(), || format!("{lost:?}"));
    Ok(Ended::Done)
}

/// Windows one after the other, each with exactly the launches in it, and none between them.
pub(super) fn switches(setup: &Setup, until: Until, found: &mut Found) -> Result<Ended> {
    let place = Place::new(setup.newest()?)?;
    let (mut program, mut agent) = place.begin(setup.bare_command(), until)?;
    let line = format!("launch {SWITCH_LAUNCHES}");
    let (mut begins, mut ends, mut exact) = (Vec::new(), Vec::new(), 0);
    for _ in 0..setup.switches {
        let mut tally = Tally::default();
        begins.push(microseconds(agent.begin(Kinds::KERNELS, GraphLevel::Whole, until)?));
        let counted = program.counted(&line, "launched", until)?;
        ends.push(microseconds(agent.end(until)?));
        program.counted(&line, "launched", until)?;
        agent.drain(&mut tally)?;
        exact += u64::from(tally.kernels == counted && counted == SWITCH_LAUNCHES);
    }
    for (what, times) in [("begin", &begins), ("end", &ends)] {
        for (name, percent) in [("median", 50), ("p95", 95), ("longest", 100)] {
            found.figure(&format!("{what} {name} us"), percentile(times, percent));
        }
    }
    found.figure("windows", setup.switches);
    found.must_equal("windows with exactly their launches", exact, setup.switches);
    nothing_lost(&mut agent, found)
}

/// The times of kernels, by their records and by events around them.
pub(super) fn durations(setup: &Setup, until: Until, found: &mut Found) -> Result<Ended> {
    let place = Place::new(setup.newest()?)?;
    let (mut program, mut agent) = place.begin(setup.bare_command(), until)?;
    // The driver loads a kernel when it is first launched, between the events.
    program.ask("spin 1 1000", "spun", until)?;
    for ns in SPIN_NS {
        let mut tally = Tally::default();
        agent.begin(Kinds::KERNELS, GraphLevel::Whole, until)?;
        let events = program.ask(&format!("spin {SPINS} {ns}"), "spun", until)?;
        agent.end(until)?;
        agent.drain(&mut tally)?;
        let records = tally.durations();
        found.must(records.len() == SPINS && events.len() == SPINS, || {
            format!("{} records of {SPINS} kernels", records.len())
        });
        let (by_record, by_event) = (percentile(&records, 50), percentile(&events, 50));
        found.figure(&format!("{} us, by records ns", ns / 1000), by_record);
        found.figure(&format!("{} us, by events ns", ns / 1000), by_event);
        let is_near = |(record, event): (&u64, &u64)| {
            *record <= event + EVENT_STEP_NS && event.saturating_sub(*record) <= EVENTS_NS
        };
        let near = records.iter().zip(&events).filter(|pair| is_near(*pair)).count();
        found.must(near * 10 >= SPINS * 9, || {
            format!(
                "{near} of {SPINS} kernels of {} us last as long as events say",
                ns / 1000
            )
        });
    }
    Ok(Ended::Done)
}
