//! Records the sample workload with the real Nsight Systems, as a person would.
//!
//! Needs `FLOPWATCH_NSYS` (and `FLOPWATCH_NSYS_HOST` where the host half is elsewhere), or nsys on
//! PATH; says that it was skipped otherwise.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use flopwatch_attach::nsys::HostTools;
use flopwatch_model::{Category, Events};
use flopwatch_pipeline::tools;
use flopwatch_test_harness::{script, workload};
use flopwatch_trace::nsys_hdf::ReadLimits;
use flopwatch_trace::timeline_file;

use crate::given::nsys;
use crate::program::{assert_says, flopwatch, stdout, text};

/// `flopwatch record` into a folder with these options, without its command.
fn record(folder: &Path, options: &[&str]) -> Command {
    let mut record = flopwatch(&["record", "--no-serve", "--output"]);
    record.arg(folder).args(options).arg("--");
    record
}

/// Records the sample workload with these options of its own.
fn record_workload(folder: &Path, options: &[&str], workload: &str) -> Output {
    let mut record = record(folder, options);
    record
        .arg(workload::program())
        .args(workload.split(' '))
        .output()
        .unwrap()
}

/// The NVTX ranges in the timeline of a result.
fn ranges(folder: &Path) -> Events {
    let timeline = timeline_file::read(&folder.join("timeline.h5"), &ReadLimits::default()).unwrap();
    let mut events = timeline.capture.events;
    events.remove(&Category::NvtxRange).unwrap()
}

/// What the workload counted in the end, by process.
fn counted(output: &Output) -> BTreeMap<i64, u64> {
    let stdout = stdout(output);
    let field = |line: &str, name: &str| {
        line.split(' ')
            .find_map(|word| word.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
    };
    let totals = stdout.lines().filter(|line| line.starts_with("total "));
    totals
        .filter_map(|line| Some((field(line, "pid")?, u64::try_from(field(line, "ranges")?).ok()?)))
        .collect()
}

#[test]
fn every_range_of_a_program_that_ends_within_the_window_is_in_the_timeline() {
    if nsys().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/record.yaml");
    let workload = "--seconds 2 --threads 2 --processes 2 --fail-code 7";
    let output = record_workload(folder.path(), &["-f", manifest, "--duration", "20"], workload);
    // The command's own exit code is ours.
    assert_eq!(output.status.code(), Some(7), "{}", text(&output));
    let counted = counted(&output);
    assert_eq!(counted.len(), 2, "{}", text(&output));
    let expected: u64 = counted.values().sum();
    assert!(expected > 100, "{expected}");
    assert_eq!(ranges(folder.path()).count(), expected, "{}", text(&output));
    assert!(folder.path().join("summary.json").is_file());
    assert!(
        !folder.path().join("capture.nsys-rep").exists(),
        "Raw was not asked for"
    );
}

#[test]
fn a_launch_that_fails_after_its_session_began_costs_nothing() {
    let Some(tools) = nsys() else { return };
    let folder = tempfile::tempdir().unwrap();
    // Beside the tools: a child sees the folder of the program that it is given, and nothing else
    // of the machine.
    let copied = folder.path().join(tools::TARGET_DIR);
    let mut copy = Command::new("cp");
    copy.arg("-a").args([tools.nsys.parent().unwrap(), &copied]);
    assert!(copy.status().unwrap().success());
    // As the launch of a busy machine does now and then: the session is there, and the launch ends
    // over its semaphore.
    let stumbling = copied.join("nsys-that-stumbles");
    let script = format!(
        "[ \"$1\" = launch ] || exec {0} \"$@\"\n\
         {0} \"$@\" & launch=$!\n\
         for environment; do :; done\n\
         until [ -e \"$environment\" ]; do sleep 0.1; done\n\
         kill -KILL $launch\n\
         exit 1",
        copied.join("nsys").display()
    );
    script::write(&stumbling, &script);
    let out = folder.path().join("out");
    let output = record(&out, &["--duration", "30"])
        .arg(workload::program())
        .args(["--seconds", "4"])
        .env("FLOPWATCH_NSYS", &stumbling)
        .env("FLOPWATCH_NSYS_HOST", tools.importer.parent().unwrap())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let expected: u64 = counted(&output).values().sum();
    assert_eq!(ranges(&out).count(), expected);
}

#[test]
fn a_program_that_outlives_the_window_runs_on_to_its_own_end() {
    if nsys().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let output = record_workload(folder.path(), &["--duration", "1"], "--seconds 8");
    // Without a list, nvtx is required of a program that does not use CUDA.
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let total: u64 = counted(&output).values().sum();
    let ranges = ranges(folder.path()).count();
    assert!(0 < ranges && ranges < total, "{ranges} of {total}");
}

#[test]
fn what_a_command_starts_after_its_window_runs_as_without_record() {
    if nsys().is_none() {
        return;
    }
    let (folder, tmp) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let out = folder.path().join("out");
    let output = record(&out, &["--duration", "1"])
        // The session is gone once the results are there.
        .args(["sh", "-c"])
        .arg("for i in $(seq 600); do [ -e \"$0\" ] && break; sleep 0.1; done; ls / >/dev/null; echo ls $?")
        .arg(out.join("summary.json"))
        .env("TMPDIR", tmp.path())
        .output()
        .unwrap();
    assert_says(&output, "ls 0");
    let left: Vec<_> = std::fs::read_dir(tmp.path()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_program_without_events_fails_and_names_the_empty_category() {
    if nsys().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let output = flopwatch(&["record", "--duration", "1", "--output"])
        .arg(folder.path())
        .args(["--", "sleep", "1"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_says(&output, "holds no events of nvtx");
    assert_says(&output, "--require");
}

#[test]
fn a_program_that_is_not_there_is_named() {
    if nsys().is_none() {
        return;
    }
    let output = flopwatch(&["record", "--no-serve", "--", "no-such-program"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_says(&output, "no-such-program: no such program");
}

#[test]
fn without_nsight_systems_it_says_what_to_install() {
    let output = flopwatch(&["record", "--nsys", "/nowhere/nsys", "--", "true"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_says(&output, "nsight-systems-target");
}

#[test]
fn an_earlier_recording_is_kept_unless_told_and_the_program_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    let at = |path: &str| folder.path().join(path);
    // Found, and never run: what is there already is seen before a session is begun.
    let tools = [at("target-linux-x64/nsys"), at("host-linux-x64/QdstrmImporter")];
    for tool in &tools {
        std::fs::create_dir_all(tool.parent().unwrap()).unwrap();
        script::write(tool, "exit 1");
    }
    std::fs::create_dir(at("out")).unwrap();
    std::fs::write(at("out/timeline.h5"), "kept").unwrap();
    let output = record(&at("out"), &["--nsys", tools[0].to_str().unwrap()])
        .arg("touch")
        .arg(at("ran"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_says(&output, "holds timeline.h5 of an earlier recording: --force");
    assert!(!at("ran").exists());
    assert_eq!(std::fs::read_to_string(at("out/timeline.h5")).unwrap(), "kept");
}

#[test]
fn a_manifest_with_an_unknown_field_is_refused_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let manifest = folder.path().join("session.yaml");
    let text = "apiVersion: flopwatch.dev/v1alpha1\nkind: ProfilingSession\nspec: {seconds: 5}\n";
    std::fs::write(&manifest, text).unwrap();
    let marker = folder.path().join("ran");
    let output = flopwatch(&["record", "-f"])
        .arg(&manifest)
        .args(["--", "touch"])
        .arg(&marker)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_says(&output, "unknown field spec.seconds");
    assert!(!marker.exists());
}

#[test]
fn the_example_session_is_a_manifest_that_record_reads() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/session.yaml");
    let manifest = flopwatch::manifest::Manifest::read(Path::new(path)).unwrap();
    assert_eq!(manifest.spec.target.pod_name.as_deref(), Some("trainer"));
}

/// What a command says of the signals that it finds blocked and ignored.
const SIGNALS: [&str; 3] = ["sh", "-c", "grep -E '^Sig(Blk|Ign):' /proc/self/status"];

#[test]
fn a_command_finds_the_signals_as_without_record() {
    if nsys().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let given = [
        vec!["--default-signal"],
        vec!["--ignore-signal=PIPE,HUP,USR2", "--block-signal=USR1,TERM"],
    ];
    for given in given {
        let plain = Command::new("env").args(&given).args(SIGNALS).output().unwrap();
        let recorded = Command::new("env")
            .args(&given)
            .arg(env!("CARGO_BIN_EXE_flopwatch"))
            .args(["record", "--duration", "10", "--no-serve", "--force", "--output"])
            .arg(folder.path())
            .arg("--")
            .args(SIGNALS)
            .output()
            .unwrap();
        let expected = masks(&plain);
        assert_eq!(expected.len(), 2, "{}", text(&plain));
        assert_eq!(masks(&recorded), expected, "{given:?}: {}", text(&recorded));
    }
}

/// The masks that [`SIGNALS`] says, without the two signals that the C library keeps for itself.
fn masks(output: &Output) -> Vec<u64> {
    let text = stdout(output);
    let lines = text.lines();
    let masks = lines.filter_map(|line| line.strip_prefix("Sig")?.split_whitespace().nth(1));
    masks
        .map(|mask| u64::from_str_radix(mask, 16).unwrap() & !(0b11 << 31))
        .collect()
}

/// Runs a record of a second of the sample workload in a `/dev/shm` of its own, with a lock of its
/// own (whoever waits in the dead list holds it, and the lists of other tests are not dead), after
/// `prepare` has put a list there for which every process of the profiler waits for ever; `$LIST`
/// is its path. The last line of its output is what lies in `/dev/shm` then.
fn record_over_a_dead_list(prepare: &str) -> Option<Output> {
    let tools = nsys()?;
    if !nix::unistd::geteuid().is_root() {
        println!("skipped: a /dev/shm of its own needs root");
        return None;
    }
    let message = Command::new(&tools.nsys).arg("--version").output().unwrap();
    let message = stdout(&message);
    let version = flopwatch_attach::nsys::parse_version(&message).and_then(flopwatch_launcher::manager_lock::version);
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        "mount -t tmpfs -o mode=1777 none /dev/shm\n\
         mkdir -p /tmp/nvidia; mount -t tmpfs -o mode=1777 none /tmp/nvidia\n\
         LIST=/dev/shm/NSys-{}\n\
         truncate -s 179488 $LIST; chmod 666 $LIST; {prepare}\n\
         \"$@\"; code=$?\n\
         echo in /dev/shm: $(ls /dev/shm)\n\
         exit $code",
        version.unwrap()
    );
    let output = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", &script, "sh"])
        .arg(env!("CARGO_BIN_EXE_flopwatch"))
        .args(["record", "--duration", "20", "--no-serve", "--output"])
        .arg(folder.path())
        .arg("--")
        .arg(workload::program())
        .args(["--seconds", "1"])
        .output()
        .unwrap();
    Some(output)
}

/// Records over a dead list, which is made anew.
fn a_dead_list_is_made_anew(prepare: &str) {
    if let Some(output) = record_over_a_dead_list(prepare) {
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        assert_says(&output, "in /dev/shm:\n");
    }
}

#[test]
fn a_list_that_never_answers_and_that_nobody_uses_is_made_anew() {
    a_dead_list_is_made_anew("");
}

#[test]
fn a_list_in_which_everybody_waits_for_ever_is_made_anew_though_somebody_uses_it() {
    a_dead_list_is_made_anew("sleep 40 7<>$LIST >/dev/null 2>&1 &");
}

#[test]
fn a_dead_list_that_cannot_be_removed_is_named_with_its_users() {
    let prepare = "mount --bind $LIST $LIST; sleep 40 7<>$LIST >/dev/null 2>&1 &";
    let Some(output) = record_over_a_dead_list(prepare) else {
        return;
    };
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    for message in [
        "/dev/shm/NSys-",
        "does not answer within 3s",
        "(sleep)",
        "in /dev/shm: NSys-",
    ] {
        assert_says(&output, message);
    }
}

/// Records two steps of a workload whose steps take 90 ms, and looks at what is there.
fn two_steps_are_recorded(tools: &HostTools) {
    let folder = tempfile::tempdir().unwrap();
    let manifest = folder.path().join("manifest.yaml");
    let spec = "apiVersion: flopwatch.dev/v1alpha1\nkind: ProfilingSession\nspec:\n  outputs: [Timeline, Raw]\n";
    std::fs::write(&manifest, spec).unwrap();
    let (manifest, nsys) = (manifest.to_str().unwrap(), tools.nsys.to_str().unwrap());
    let host = tools.importer.parent().unwrap().to_str().unwrap();
    let range = ["--duration", "20", "--capture-range", "nvtx:step,x2"];
    let options = [&range[..], &["--nsys", nsys, "--nsys-host", host, "-f", manifest]].concat();
    // By their count: a newer version may take seconds until the first range of a program begins.
    let output = record_workload(folder.path(), &options, "--ranges 160 --range-micros 30000");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    for report in ["capture.nsys-rep", "capture.2.nsys-rep"] {
        assert!(folder.path().join(report).is_file(), "{report}: {}", text(&output));
    }
    let events = ranges(folder.path());
    let starts = |name: &str| -> Vec<u64> {
        let of_name = (0..events.len()).filter(|at| events.name_of(*at) == name);
        of_name.map(|at| events.start_ns[at]).collect()
    };
    let backward = starts("backward");
    assert_eq!(backward.len(), 2, "{backward:?}: {}", text(&output));
    let apart = backward[1] - backward[0];
    assert!((90_000_000..20_000_000_000).contains(&apart), "{apart} ns apart");
    assert!(events.len() <= 10, "{}", events.len());
    println!(
        "two of the command's steps, {} ms apart, with {} ranges",
        apart / 1_000_000,
        events.len()
    );
}

#[test]
fn ranges_of_a_command_become_one_timeline() {
    if let Some(tools) = nsys() {
        two_steps_are_recorded(&tools);
    }
}

#[test]
fn ranges_of_a_command_become_one_timeline_with_a_newer_version_too() {
    let Some(program) = std::env::var_os("FLOPWATCH_NSYS_NEWER").map(PathBuf::from) else {
        println!("skipped: no newer Nsight Systems (FLOPWATCH_NSYS_NEWER)");
        return;
    };
    let host = program.ancestors().nth(2).unwrap().join("host-linux-x64");
    let path = std::env::var_os("PATH");
    two_steps_are_recorded(&tools::find(Some(&program), Some(&host), path.as_ref()).unwrap());
}

#[test]
fn a_range_that_a_command_never_begins_is_no_success() {
    if nsys().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let options = ["--duration", "5", "--capture-range", "nvtx:nowhere"];
    let output = record_workload(folder.path(), &options, "--seconds 1");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert_says(&output, "did not begin the NVTX range \"nowhere\"");
}
