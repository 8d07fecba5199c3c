//! A container that fills the file of its own programs: its window ends in time, with what it
//! recorded.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::time::{Duration, Instant};

use flopwatch_agent::profilers::Profiler as _;
use flopwatch_model::Category;
use flopwatch_tracer_file::header::{HEAP_USED_AT, WANTED_AT};
use flopwatch_tracer_file::process::{
    BYTES, CLAIM_AT, GENERATION_AT, HOLDER_AT, Holder, PHASE_AT, PID_AT, Phase, REASON_AT, Reason, SLOTS, USED, claim,
};
use flopwatch_tracer_file::{Layout, NAMES_AT};

use super::WINDOW_DURATION;
use super::node::{Node, cuda, records};

/// Longest end of a window: three seconds for programs that do not answer, and a busy machine.
const END_TIMEOUT: Duration = Duration::from_secs(10);

fn layout(file: &File) -> Layout {
    let length = file.metadata().unwrap().len();
    Layout::of(usize::try_from(length).unwrap()).unwrap()
}

fn write(file: &File, at: usize, bytes: &[u8]) {
    file.write_all_at(bytes, u64::try_from(at).unwrap()).unwrap();
}

#[test]
fn slots_full_of_nonsense_neither_hold_up_the_end_of_a_window_nor_take_a_record_from_it() {
    let mut node = Node::new("");
    let (mut program, cuda) = (node.start(), cuda());
    let state = node.begin(&cuda, WINDOW_DURATION).unwrap();
    let counted = program.recorded("launch 500");
    let file = node.file();
    let mut generation = [0; 4];
    file.read_exact_at(&mut generation, u64::try_from(WANTED_AT).unwrap())
        .unwrap();
    // The first one is the program's.
    for slot in 1..SLOTS {
        let words = [
            (PID_AT, u32::try_from(slot).unwrap()),
            (PHASE_AT, Phase::Recording.bits()),
            (GENERATION_AT, u32::from_le_bytes(generation)),
            (REASON_AT, Reason::None.bits()),
            (HOLDER_AT, Holder::None.bits()),
        ];
        let mut bytes = [0xa5; BYTES];
        for (place, word) in words {
            bytes[place..][..4].copy_from_slice(&word.to_le_bytes());
        }
        bytes[CLAIM_AT..][..8].copy_from_slice(&claim(7, USED).to_le_bytes());
        write(&file, layout(&file).process(slot).unwrap(), &bytes);
    }
    let begun = Instant::now();
    cuda.stop(&node.site, &state, &|| true).unwrap();
    assert!(begun.elapsed() < END_TIMEOUT, "{:?}", begun.elapsed());
    let capture = node.capture();
    assert_eq!(records(&capture), counted);
    let losses = capture.losses.list();
    assert!(losses.len() < 270, "{}", losses.len());
    let invented = losses
        .iter()
        .filter(|loss| loss.what.contains("the file no longer holds"));
    assert!(
        invented.count() > 0,
        "whose records the slots count is not told: {losses:?}"
    );
}

#[test]
fn names_that_find_no_room_leave_their_kernels_without_one_and_are_told() {
    let mut node = Node::new("");
    let (mut program, cuda) = (node.start(), cuda());
    let file = node.file();
    write(&file, HEAP_USED_AT, &u64::MAX.to_le_bytes());
    write(&file, NAMES_AT, &vec![0xff; layout(&file).heap_at - NAMES_AT]);
    let state = node.begin(&cuda, WINDOW_DURATION).unwrap();
    let counted = program.recorded("launch 500");
    cuda.stop(&node.site, &state, &|| true).unwrap();
    let capture = node.capture();
    assert_eq!(records(&capture), counted);
    let kernels = &capture.events[&Category::CudaKernel];
    assert!(kernels.names.iter().all(String::is_empty), "{:?}", kernels.names);
    let losses = capture.losses.list();
    let told = losses.iter().any(|loss| loss.what.contains("found no place"));
    assert!(told, "{losses:?}");
}
