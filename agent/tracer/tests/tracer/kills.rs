//! Programs that are killed in a window, and what they leave.

use std::time::Duration;

use flopwatch_tracer_file::process::Count;
use flopwatch_tracer_file::slot::{self, Kind};
use flopwatch_tracer_file::wanted::Kinds;
use flopwatch_tracer_file::{Layout, segment};

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
}

/// Kills a program in a window, at another moment in each round.
pub(crate) fn killed(round: u64) -> Left {
    let rig = Rig::new(1305).with("FLOPWATCH_CUDA_BYTES", &(64_u32 << 20));
    let (mut program, mut agent) = Agent::started(&rig);
    agent.begin(Kinds::KERNELS.with(Kinds::RUNTIME));
    assert_eq!(program.ask("run"), "running");
    std::thread::sleep(Duration::from_micros(2_000 + round * 7919 % 30_000));
    program.child.kill().unwrap();
    program.child.wait().unwrap();
    Left {
        read: agent.drain().len(),
        tagged: tagged(&rig),
        counted: usize::try_from(agent.process(0).count(Count::Records)).unwrap(),
    }
}

/// Records whose tag was written, counted without the reader.
fn tagged(rig: &Rig) -> usize {
    let file = std::fs::read(rig.trace()).unwrap();
    let layout = Layout::of(file.len()).unwrap();
    let word = |at: usize| u64::from_le_bytes(*file[at..].first_chunk().unwrap());
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
