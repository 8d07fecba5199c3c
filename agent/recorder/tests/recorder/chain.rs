//! Another library behind ours, and several copies of NVTX in one process.

use super::calls::every_call_is_there;
use super::rig::{Rig, lost, ranges, ranges_of};

fn chained(rig: &Rig, words: &[&str]) -> std::process::Command {
    rig.compile("listener.c", "liblistener.so", &["-shared", "-fPIC"]);
    let mut command = rig.command(words);
    command
        .env("FLOPWATCH_NVTX_NEXT", rig.path("liblistener.so"))
        .env("LISTENER_SAYS", rig.path("said"));
    command
}

#[test]
fn a_library_behind_ours_sees_every_call_and_its_answers_reach_the_program() {
    let Some(rig) = Rig::any() else { return };
    let ranges_said = ranges_of(&chained(&rig, &["threads", "16", "1000"]).output().unwrap());
    let said = std::fs::read_to_string(rig.path("said")).unwrap();
    assert_eq!(
        said,
        format!("pushes {ranges_said} pops {ranges_said} starts 0 ends 0 marks 0\n")
    );
    assert_eq!(ranges(&rig.capture()).count(), ranges_said);
    // The identifier that the other library gave comes back to it, and names the range in ours.
    let rig = Rig::any().unwrap();
    assert_eq!(ranges_of(&chained(&rig, &["across"]).output().unwrap()), 1);
    let said = std::fs::read_to_string(rig.path("said")).unwrap();
    assert_eq!(said, "pushes 0 pops 0 starts 1 ends 1 marks 0\n");
    assert_eq!(rig.capture().losses.list(), []);
}

#[test]
fn what_a_library_behind_ours_leaves_out_is_recorded_all_the_same() {
    let Some(rig) = Rig::any() else { return };
    assert_eq!(ranges_of(&chained(&rig, &["every"]).output().unwrap()), 10);
    every_call_is_there(&rig.capture());
}

#[test]
fn a_library_behind_ours_that_fails_or_is_missing_or_is_ours_costs_nothing_but_itself() {
    let Some(rig) = Rig::any() else { return };
    let mut failing = chained(&rig, &["threads", "1", "5"]);
    failing.env("LISTENER_FAILS", "1");
    let mut missing = chained(&rig, &["threads", "1", "5"]);
    missing.env("FLOPWATCH_NVTX_NEXT", rig.path("no such library"));
    let mut ours = chained(&rig, &["threads", "1", "5"]);
    ours.env("FLOPWATCH_NVTX_NEXT", rig.path("libflopwatch-recorder.so"));
    for mut command in [failing, missing, ours] {
        assert_eq!(ranges_of(&command.output().unwrap()), 10);
    }
    let capture = rig.capture();
    assert_eq!(ranges(&capture).len(), 30);
    assert_eq!(lost(&capture, "profilers' libraries that did not load"), 3);
}

#[test]
fn every_copy_of_nvtx_is_recorded_up_to_sixteen_and_the_others_are_counted() {
    let Some(rig) = Rig::any() else { return };
    rig.compile(
        "program.c",
        "copy.so",
        &["-shared", "-fPIC", "-DCOPY", "-Wno-unused-function"],
    );
    let mut words = vec!["copies".to_owned()];
    for copy in 0..20 {
        let path = rig.path(&format!("copy{copy}.so"));
        std::fs::copy(rig.path("copy.so"), &path).unwrap();
        words.push(path.display().to_string());
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    assert_eq!(ranges_of(&chained(&rig, &words).output().unwrap()), 120);
    let capture = rig.capture();
    assert_eq!(ranges(&capture).len(), 16 * 6);
    let left_out = lost(&capture, "copies of NVTX beyond those that a process can record");
    assert_eq!(left_out, 4);
    // The profiler hears those too.
    let said = std::fs::read_to_string(rig.path("said")).unwrap();
    assert!(said.starts_with("pushes 120 pops 120"), "{said}");
}
