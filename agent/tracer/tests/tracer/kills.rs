//! Programs that are killed in a window, and what they leave.

use std::time::Duration;

use flopwatch_tracer_file::process::Count;
use flopwatch_tracer_file::slot::{self, Kind};
use flopwatch_tracer_file::wanted::Kinds;
use flopwatch_tracer_file::{Layout, header, segment};

use super::agent::Agent;
use super::rig::Rig;

/// What a program left.
pub(crate) struct Left {
    /// Records whose tag was written.
    pub(crate) tagged: usize,
    /// Records that were read.
    pub(crate) read: usize,
    /// Records that the program had counted.
    pub(crate) counted: usize,
    /// Whether the file holds all that was written: it did not go round.
    pub(crate) is_whole: bool,
    /// Turns of the file's last round whose segment has another's records, or none.
    pub(crate) turns_missing: usize,
}

/// Kills a program in a window, at another moment in each round.
pub(crate) fn killed(round: u64, file_bytes: usize) -> Left {
    let rig = Rig::new(1305).with("FLOPWATCH_CUDA_BYTES", &file_bytes);
    let (mut program, mut agent) = Agent::started(&rig);
    agent.begin(Kinds::KERNELS.with(Kinds::RUNTIME));
    assert_eq!(program.ask("run"), "running");
    std::thread::sleep(Duration::from_micros(2_000 + round * 7919 % 30_000));
    program.child.kill().unwrap();
    program.child.wait().unwrap();
    let file = std::fs::read(rig.trace()).unwrap();
    let layout = Layout::of(file.len()).unwrap();
    Left {
        read: agent.drain().len(),
        tagged: tagged(&file, &layout),
        counted: usize::try_from(agent.process(0).count(Count::Records)).unwrap(),
        is_whole: turns(&file) <= segments(&layout),
        turns_missing: turns_missing(&file, &layout),
    }
}

/// A word of a file, counted in bytes from its begin.
fn word(file: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*file[at..].first_chunk().unwrap())
}

fn segments(layout: &Layout) -> u64 {
    u64::try_from(layout.segments).unwrap()
}

/// Turns of segments so far.
fn turns(file: &[u8]) -> u64 {
    word(file, header::CURSOR_AT)
}

/// Turns of the file's last round whose segment has another claim than theirs.
fn turns_missing(file: &[u8], layout: &Layout) -> usize {
    let segments = segments(layout);
    let last_round = turns(file).saturating_sub(segments)..turns(file);
    let is_missing = |turn: &u64| {
        let begin = layout.segment(usize::try_from(turn % segments).unwrap()).unwrap();
        let (number, _) = segment::of_claim(word(file, begin + segment::CLAIM_AT));
        number != segment::number_of_turn(*turn)
    };
    last_round.filter(is_missing).count()
}

/// Records whose tag was written, counted without the reader.
fn tagged(file: &[u8], layout: &Layout) -> usize {
    let word = |at: usize| word(file, at);
    let mut count = 0;
    for at in 0..layout.segments {
        let begin = layout.segment(at).unwrap();
        let claim = word(begin) >> 32;
        for place in 0..segment::SLOTS {
            let tag = word(begin + segment::SLOTS_AT + place * slot::BYTES + slot::TAG_AT);
            let is_shape = tag & 0xff == u64::from(Kind::Shape.bits());
            count += usize::from(claim != 0 && tag >> 32 == claim && !is_shape);
        }
    }
    count
}
