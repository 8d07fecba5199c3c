//! Programs that end in a window, and files that somebody else writes to.

use std::os::unix::fs::FileExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;

use flopwatch_tracer_file::wanted::Kinds;
use flopwatch_tracer_file::{DEFAULT_BYTES, LEAST_BYTES};

use super::agent::{Agent, window};
use super::kills::killed;
use super::rig::{Program, Rig};

#[test]
fn a_program_that_is_killed_in_a_window_leaves_every_record_whose_tag_was_written() {
    let mut all = 0;
    for round in 0..100 {
        let file_bytes = if round % 4 == 0 { LEAST_BYTES } else { DEFAULT_BYTES };
        let left = killed(round, file_bytes);
        assert_eq!(left.read, left.tagged, "in round {round}");
        // Whoever writes more than the file holds writes over the oldest, and over no other. The
        // program may be killed between its turn and its claim.
        assert!(left.turns_missing <= 1, "{} in round {round}", left.turns_missing);
        assert!(
            !left.is_whole || left.read >= left.counted,
            "{} of {} in round {round}",
            left.read,
            left.counted
        );
        all += left.read;
    }
    println!("{all} records of 100 programs that were killed");
    assert!(all > 100_000, "{all}");
}

#[test]
fn a_program_ends_as_it_would_without_us_whatever_the_window_does() {
    for faults in ["", "flush_ms=1500", "enable_ms=1500", "disable_ms=800"] {
        for (end, code, signal) in [("exit 7", Some(7), None), ("abort", None, Some(6))] {
            let rig = Rig::new(1305).failing(faults);
            let (mut program, mut agent) = Agent::started(&rig);
            agent.order(window(Kinds::KERNELS));
            program.ask("work 1000");
            if faults.is_empty() {
                agent.settle(0);
            }
            agent.order(flopwatch_tracer_file::wanted::Wanted {
                mode: flopwatch_tracer_file::wanted::Mode::Off,
                ..window(Kinds::KERNELS)
            });
            program.tell(end);
            let status = program.child.wait().unwrap();
            assert_eq!((status.code(), status.signal()), (code, signal), "{faults}: {end}");
        }
    }
}

#[test]
fn rubbish_that_somebody_writes_into_the_file_hurts_neither_the_program_nor_the_reader() {
    let rig = Rig::new(1305);
    let without = Program::of(rig.bare()).ask("work 1000");
    drop(rig.start());
    let file = std::fs::OpenOptions::new().write(true).open(rig.trace()).unwrap();
    let length = file.metadata().unwrap().len();
    let mut program = rig.start();
    let mut random = 88_172_645_463_325_252_u64;
    for round in 0..60 {
        let mut agent = Agent::of(&rig);
        agent.order(window(Kinds::ALL));
        program.tell("work 1000");
        for _ in 0..2_000 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            // What says that it is a file stays, and what is wanted: that is the agent's to write.
            let at = 128 + random % (length - 136);
            file.write_all_at(&random.rotate_left(31).to_le_bytes(), at).unwrap();
        }
        agent.drain_anything();
        assert_eq!(program.line(), without, "in round {round}");
    }
    assert!(program.end().success());
}

#[test]
fn a_file_that_is_none_or_cannot_be_made_is_left_alone() {
    for folder in ["trace", "no such folder"] {
        let rig = Rig::new(1305);
        std::fs::write(rig.trace(), "somebody else's").unwrap();
        let rig = rig.with("FLOPWATCH_FAKE_CUPTI", &"enable=1");
        let mut command = rig.command();
        command
            .env("FLOPWATCH_CUDA_DIR", rig.path(folder))
            .stderr(Stdio::piped());
        let mut program = Program::of(command);
        assert_eq!(program.ask("init"), "init 0");
        assert_eq!(program.recorded("launch 10"), 0);
        let threads = std::fs::read_dir(format!("/proc/{}/task", program.child.id())).unwrap();
        assert_eq!(threads.count(), 1);
        assert!(program.end().success());
        assert_eq!(std::fs::read_to_string(rig.trace()).unwrap(), "somebody else's");
    }
}
