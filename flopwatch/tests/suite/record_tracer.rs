//! Records programs by the CUDA tracer, between stand-ins for NVIDIA's libraries
//! (`tests/rig/fake-cupti`), as a person would. Nothing here says anything of a GPU.
#![allow(clippy::disallowed_methods, reason = "there is no runtime whose threads would sleep")]

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use flopwatch_fake_cupti::{Program, Rig};
use flopwatch_model::{Capture, Category, Events, Loss, LossReason};
use flopwatch_test_harness::workload;
use flopwatch_trace::nsys_hdf::ReadLimits;
use flopwatch_trace::timeline_file;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::program::{flopwatch, stderr, stdout};

/// How long something may take that takes a moment.
const RESULTS_TIMEOUT: Duration = Duration::from_mins(1);

/// The command line of a program of the rig, with its environment.
fn program(rig: &Rig) -> Vec<OsString> {
    let bare = rig.bare();
    let variables = bare.get_envs().map(|(name, value)| {
        let mut word = name.to_owned();
        word.push("=");
        word.push(value.unwrap_or_default());
        word
    });
    let line = [OsString::from("env")].into_iter().chain(variables);
    line.chain([bare.get_program().to_owned()]).collect()
}

/// `flopwatch record` of a command by the tracer; its results go to a folder of the rig.
fn record(rig: &Rig, options: &[&str], command: &[OsString]) -> Command {
    let mut record = flopwatch(&["record", "--profiler", "cuda", "--no-serve", "--cupti"]);
    record
        .arg(rig.path("own"))
        .arg("--output")
        .arg(rig.path("out"))
        .args(options)
        .arg("--")
        .args(command)
        .stderr(Stdio::piped());
    record
}

/// Starts the record of a program of the rig, which begins CUDA then.
fn begun(record: Command) -> Program {
    let mut command = Program::of(record);
    assert_eq!(command.ask("init"), "init 0");
    command
}

/// The same of the rig's own program, with a CUPTI that does so.
fn begun_with(rig: &Rig, cupti: &str) -> Program {
    let mut record = record(rig, &[], &program(rig));
    record.env("FLOPWATCH_FAKE_CUPTI", cupti);
    begun(record)
}

/// `flopwatch record` of the programs that share a file.
fn attach(file: &Path, output: &Path, seconds: &str) -> Command {
    let mut record = flopwatch(&["record", "--no-serve", "--duration", seconds, "--attach-file"]);
    record
        .arg(file)
        .arg("--output")
        .arg(output)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    record
}

/// Ends a command's input, and gives its exit code and what it said on its standard error.
fn ended(mut record: Program) -> (ExitStatus, String) {
    let mut errors = record.child.stderr.take().unwrap();
    let status = record.end();
    let mut text = String::new();
    errors.read_to_string(&mut text).unwrap();
    (status, text)
}

/// The lines of a command's standard error, as they come.
fn lines(record: &mut Program) -> Receiver<String> {
    let errors = BufReader::new(record.child.stderr.take().unwrap());
    let (line, lines) = mpsc::channel();
    std::thread::spawn(move || errors.lines().map_while(Result::ok).try_for_each(|one| line.send(one)));
    lines
}

/// Launches kernels until a window records them, then so many more. Gives how many records that
/// were, by the program's own count.
fn launch(program: &mut Program, count: u64) -> u64 {
    let begin = Instant::now();
    loop {
        let recorded = program.recorded("launch 1");
        if recorded > 0 {
            return recorded + program.recorded(&format!("launch {count}"));
        }
        assert!(begin.elapsed() < RESULTS_TIMEOUT, "the window does not begin");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Waits for the results of a recording: its window is over then.
fn wait_for_results(rig: &Rig) {
    let begin = Instant::now();
    while !rig.path("out/summary.json").is_file() {
        assert!(begin.elapsed() < RESULTS_TIMEOUT, "there are no results");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn timeline(folder: &Path) -> Capture {
    let read = timeline_file::read(&folder.join("timeline.h5"), &ReadLimits::default());
    read.unwrap().capture
}

fn count(capture: &Capture, category: Category) -> u64 {
    capture.events.get(&category).map_or(0, Events::count)
}

/// Kernels and calls together: what the program counts of a launch of kernels.
fn records(capture: &Capture) -> u64 {
    count(capture, Category::CudaKernel) + count(capture, Category::CudaApi)
}

#[test]
fn a_recording_holds_as_many_kernels_as_the_command_counted_and_passes_its_exit_code_on() {
    let rig = Rig::new(1305);
    let manifest = rig.path("manifest.yaml");
    let spec =
        "apiVersion: flopwatch.dev/v1alpha1\nkind: ProfilingSession\nspec:\n  outputs: [Timeline, Summary, Raw]\n";
    std::fs::write(&manifest, spec).unwrap();
    let options = ["--duration", "5", "-f", manifest.to_str().unwrap()];
    let mut command = begun(record(&rig, &options, &program(&rig)));
    let expected = launch(&mut command, 1000);
    wait_for_results(&rig);
    // The window is over, and the command runs on; what the recording says is on its output too.
    command.tell("launch 5");
    let answer = std::iter::repeat_with(|| command.line()).find(|line| line.starts_with("recorded "));
    assert_eq!(answer.as_deref(), Some("recorded 0"));
    command.tell("exit 7");
    let (status, errors) = ended(command);
    assert_eq!(status.code(), Some(7), "{errors}");
    let capture = timeline(&rig.path("out"));
    assert_eq!(records(&capture), expected, "{errors}");
    assert!(count(&capture, Category::CudaKernel) >= 1000);
    assert_eq!(capture.losses.list(), []);
    let names = &capture.events[&Category::CudaKernel].names;
    assert!(
        names.contains(&"void kernel_7<float, 7>(float*, int)".to_owned()),
        "{names:?}"
    );

    // What was drained is a file like any other.
    let output = flopwatch(&["convert", "--quiet"])
        .arg(rig.path("out/capture.cuda-trace"))
        .arg(rig.path("again.h5"))
        .output()
        .unwrap();
    let text = stdout(&output);
    assert!(text.ends_with(&format!(": {expected} events\n")), "{text}");
}

#[test]
fn a_command_without_a_duration_is_recorded_until_its_end() {
    let rig = Rig::new(1300);
    let mut command = begun(record(&rig, &[], &program(&rig)));
    let expected = launch(&mut command, 1000);
    // CUPTI is asked for records twenty times a second.
    std::thread::sleep(Duration::from_millis(500));
    let (status, errors) = ended(command);
    assert_eq!(status.code(), Some(0), "{errors}");
    let capture = timeline(&rig.path("out"));
    assert_eq!(records(&capture), expected);
    assert_eq!(capture.losses.list(), []);
    assert!(!errors.contains("missing"), "{errors}");
}

#[test]
fn what_cupti_still_had_of_a_program_that_ended_is_told() {
    // A flush gives nothing back: full buffers come alone.
    let rig = Rig::new(1305);
    let mut command = begun_with(&rig, "keep=1");
    let counted = launch(&mut command, 20_000);
    let (status, errors) = ended(command);
    assert_eq!(status.code(), Some(0), "{errors}");
    assert!(errors.contains("CUPTI still had 1 buffers of records"), "{errors}");
    let capture = timeline(&rig.path("out"));
    let kept = records(&capture);
    assert!(kept < counted && kept + 30_000 > counted, "{kept} of {counted}");
    let losses = capture.losses.list();
    let [lost] = &losses[..] else { panic!("{losses:?}") };
    assert_eq!(
        (lost.what.as_str(), lost.count),
        (
            "buffers of CUDA records that CUPTI still had when their program ended",
            1
        )
    );
    // Of a program that does less than fills one, nothing is there.
    let rig = Rig::new(1305);
    let mut command = begun_with(&rig, "keep=1");
    launch(&mut command, 5);
    let (status, errors) = ended(command);
    assert_eq!(status.code(), Some(1), "{errors}");
    assert!(
        errors.contains("1 programs ended before CUPTI handed out what they did"),
        "{errors}"
    );
}

#[test]
fn a_program_that_is_killed_in_its_window_keeps_its_records() {
    let rig = Rig::new(1305);
    let shell = ["sh", "-c", "echo $$; exec \"$@\"", "sh"].map(OsString::from);
    let line: Vec<OsString> = shell.into_iter().chain(program(&rig)).collect();
    let mut command = Program::of(record(&rig, &["--duration", "60"], &line));
    let pid = Pid::from_raw(command.line().parse().unwrap());
    assert_eq!(command.ask("init"), "init 0");
    let counted = launch(&mut command, 20_000);
    kill(pid, Signal::SIGKILL).unwrap();
    let (status, errors) = ended(command);
    assert_eq!(status.code(), Some(137), "{errors}");
    // What was in CUPTI's last buffer went with the program: a mebibyte, of 128 bytes and more.
    let kept = records(&timeline(&rig.path("out")));
    assert!(kept <= counted && kept + 30_000 > counted, "{kept} of {counted}");
}

#[test]
fn a_program_that_refuses_is_told_at_once_with_who_has_the_subscription() {
    let rig = Rig::new(1305);
    let mut command = begun_with(&rig, "subscribe=39");
    let lines = lines(&mut command);
    let mut said = std::iter::repeat_with(|| lines.recv_timeout(RESULTS_TIMEOUT).unwrap());
    let told = said.find(|line| line.contains("is not recorded: another tool has CUPTI's one subscription"));
    assert!(told.is_some());
    assert_eq!(command.ask("launch 5"), "recorded 0");
    let status = command.end();
    let errors: Vec<String> = lines.iter().collect();
    assert_eq!(status.code(), Some(1), "{errors:?}");
    let reason = "nothing was recorded: another tool has CUPTI's one subscription";
    assert!(errors.iter().any(|line| line.contains(reason)), "{errors:?}");
    assert!(!rig.path("out/timeline.h5").exists(), "an empty success");
}

#[test]
fn a_command_that_begins_no_cuda_is_no_success() {
    let rig = Rig::new(1305);
    let (status, errors) = ended(Program::of(record(&rig, &[], &["true".into()])));
    assert_eq!(status.code(), Some(1), "{errors}");
    assert!(errors.contains("no program of the command began CUDA"), "{errors}");
}

#[test]
fn what_the_tracer_does_not_do_is_refused_before_the_command_starts() {
    let rig = Rig::new(1305);
    let marker: Vec<OsString> = vec!["touch".into(), rig.path("ran").into()];
    for (option, expected) in [
        (
            "--capture-range=cuda-profiler-api",
            "--capture-range (captureRange) is for Nsight Systems",
        ),
        ("--gpu-metrics=1000", "--gpu-metrics (gpuMetrics) is for Nsight Systems"),
        ("--require=os_runtime", "the trace of osrt is for Nsight Systems"),
    ] {
        let (status, errors) = ended(Program::of(record(&rig, &[option], &marker)));
        assert_eq!(status.code(), Some(1), "{errors}");
        assert!(errors.contains(expected), "{errors}");
    }
    assert!(!rig.path("ran").exists());
}

#[test]
fn ranges_and_kernels_of_a_command_are_on_one_timeline() {
    let rig = Rig::new(1305);
    let script = "\"$1\" --seconds 1 >/dev/null & shift; exec \"$@\"";
    let shell = ["sh", "-c", script, "sh"].map(OsString::from);
    let line = shell.into_iter().chain([workload::program().into()]);
    let line: Vec<OsString> = line.chain(program(&rig)).collect();
    let mut command = begun(record(&rig, &["--duration", "6"], &line));
    launch(&mut command, 100);
    wait_for_results(&rig);
    let (status, errors) = ended(command);
    assert_eq!(status.code(), Some(0), "{errors}");
    let capture = timeline(&rig.path("out"));
    for category in [Category::NvtxRange, Category::CudaKernel] {
        let events = &capture.events[&category];
        assert!(events.len() >= 100, "{category:?}: {}", events.len());
        assert!(events.last_end_ns().unwrap() <= capture.duration_ns, "{category:?}");
    }
}

/// What `flopwatch` says of the timeline of a rig.
fn said(rig: &Rig, command: &[&str]) -> String {
    let mut said = flopwatch(command);
    let output = said.arg("--quiet").arg(rig.path("out/timeline.h5")).output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", stderr(&output));
    stdout(&output)
}

#[test]
fn a_training_loop_on_the_simulated_gpu_shows_its_steps_and_what_is_slow_and_no_rate_of_a_gpu() {
    let rig = Rig::new(1305);
    let mut line = program(&rig);
    line.pop();
    line.push(workload::program().into());
    line.extend(["--simulated-gpu", "--quiet", "--seconds=5"].map(OsString::from));
    let (status, errors) = ended(Program::of(record(&rig, &["--duration", "2"], &line)));
    assert_eq!(status.code(), Some(0), "{errors}");
    let capture = timeline(&rig.path("out"));
    // The window cuts what goes on at its begin and at its end.
    let losses = capture.losses.list();
    let lost: Vec<_> = losses
        .iter()
        .filter(|loss| loss.reason != LossReason::Truncated)
        .collect();
    assert_eq!(lost, Vec::<&Loss>::new());
    let [device] = &capture.devices[..] else {
        panic!("{:?}", capture.devices)
    };
    assert_eq!(device.name, "Simulated GPU");
    assert_eq!((device.peak_bandwidth, device.peak_flops.len()), (None, 0));
    for category in [
        Category::NvtxRange,
        Category::CudaKernel,
        Category::CudaMemcpyH2d,
        Category::CudaMemcpyD2h,
        Category::CudaSync,
        Category::CudaApi,
    ] {
        assert!(count(&capture, category) > 0, "{category:?}");
    }
    let names = |category| -> Vec<&str> { capture.events[&category].names.iter().map(String::as_str).collect() };
    for range in ["step", "load batch", "forward", "backward", "optimizer", "read loss"] {
        assert!(names(Category::NvtxRange).contains(&range), "{range}");
    }
    for call in ["cudaLaunchKernel", "cudaMemcpyAsync", "cudaStreamSynchronize"] {
        let calls = names(Category::CudaApi);
        assert!(calls.iter().any(|name| name.starts_with(call)), "{call}: {calls:?}");
    }
    let process = |category| {
        let row = capture.events[&category].row[0];
        capture.rows[row.index()].process
    };
    assert_eq!(process(Category::NvtxRange), process(Category::CudaKernel));

    let advice = said(&rig, &["diagnose"]);
    assert!(advice.contains("The GPU waits for data"), "{advice}");
    assert!(said(&rig, &["summary"]).contains("GPU 0 Simulated GPU: busy"));
    for (analysis, what) in [("roofline", "rooflines"), ("mfu", "floating-point operations")] {
        let text = said(&rig, &["analyze", analysis]);
        assert!(text.contains(&format!("Not captured: {what}")), "{text}");
    }
}

#[test]
fn a_program_that_runs_already_is_recorded_window_by_window() {
    let rig = Rig::new(1304);
    let mut program = rig.start();
    for output in ["first", "second"] {
        let mut recording = attach(&rig.trace(), &rig.path(output), "3").spawn().unwrap();
        let expected = launch(&mut program, 500);
        let mut errors = String::new();
        recording.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        assert_eq!(recording.wait().unwrap().code(), Some(0), "{errors}");
        // The program has gone back to sleep, and of the window before there is nothing.
        assert_eq!(program.ask("launch 50"), "recorded 0");
        let capture = timeline(&rig.path(output));
        assert_eq!(records(&capture), expected, "{output}: {errors}");
        assert_eq!(capture.losses.list(), []);
    }
    assert!(program.end().success());
}

#[test]
fn a_file_that_is_none_of_a_running_program_is_refused_with_its_reason() {
    let rig = Rig::new(1305);
    let refused = |file: &Path, expected: &str| {
        let output = attach(file, &rig.path("out"), "1").output().unwrap();
        let errors = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(errors.contains(expected), "{expected}: {errors}");
        assert!(!rig.path("out/timeline.h5").exists());
    };
    refused(&rig.path("missing"), "cannot be opened");
    std::fs::write(rig.path("text"), "somebody else's").unwrap();
    refused(&rig.path("text"), "is no file of a CUDA tracer of this version");
    refused(&rig.path("trace"), "cannot be opened");
    std::os::unix::fs::symlink(rig.trace(), rig.path("link")).unwrap();
    refused(&rig.path("link"), "cannot be opened");
    // Its program has ended.
    drop(rig.start());
    refused(&rig.trace(), "no program that runs has the tracer's library in it");
    let file = std::fs::OpenOptions::new().write(true).open(rig.trace()).unwrap();
    file.set_permissions(PermissionsExt::from_mode(0o644)).unwrap();
    refused(&rig.trace(), "mode 644");
    file.set_permissions(PermissionsExt::from_mode(0o600)).unwrap();
    file.set_len(1 << 20).unwrap();
    refused(&rig.trace(), "has 1048576 bytes, which is not the length that it says");
    file.set_len(100).unwrap();
    refused(&rig.trace(), "has 100 bytes");
}
