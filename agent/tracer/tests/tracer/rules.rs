//! The rules of safety, each as what a program sees of it.

use std::process::Command;

use flopwatch_tracer_file::process::{Count, Holder, Phase, Reason};
use flopwatch_tracer_file::wanted::Kinds;

use super::agent::{Agent, window};
use super::rig::Rig;

/// Why a process refuses a window.
fn refused(agent: &mut Agent) -> (Reason, Holder, u32) {
    agent.order(window(Kinds::KERNELS));
    assert_eq!(agent.settle(0), Phase::Refused);
    let process = agent.process(0);
    (process.reason, process.holder, process.result)
}

#[test]
fn the_library_wants_nothing_of_a_version_stays_and_cannot_panic() {
    let rig = Rig::new(1305);
    let tool = |program: &str, word: &str| {
        let output = Command::new(program)
            .arg(word)
            .arg(rig.path("libflopwatch_cuda.so"))
            .output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    let symbols = tool("nm", "-D");
    let (mut wanted, mut offered) = (Vec::new(), Vec::new());
    for line in symbols.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [_, "T", name] => offered.push(name),
            [kind, name] => wanted.push((kind, name)),
            _ => panic!("{line}"),
        }
    }
    assert_eq!(offered, ["InitializeInjection"]);
    let compilers = ["memcpy", "memset", "memmove", "memcmp", "bcmp", "strlen"];
    for (kind, name) in wanted {
        let is_weak = kind == "w" && ["clock_gettime", "dlopen", "dlsym", "getenv"].contains(&name);
        assert!(is_weak || compilers.contains(&name), "{kind} {name}");
    }
    let dynamic = tool("readelf", "-d");
    assert!(dynamic.contains("NODELETE") && !dynamic.contains("NEEDED"), "{dynamic}");
    for end in ["FINI", "INIT"] {
        assert!(!dynamic.contains(end), "{dynamic}");
    }
}

#[test]
fn one_thread_of_ours_makes_every_call_and_limits_the_device_before_the_first_kind() {
    let (rig, mut program, mut agent) = Agent::anew();
    for _ in 0..3 {
        agent.begin(Kinds::ALL);
        program.recorded("launch 100");
        agent.end();
    }
    let pid = program.child.id();
    let calls = rig.calls();
    let threads: Vec<u32> = calls.iter().map(|(.., thread)| *thread).collect();
    assert!(threads.iter().all(|thread| *thread == threads[0] && *thread != pid));
    let name = std::fs::read_to_string(format!("/proc/{pid}/task/{}/comm", threads[0])).unwrap();
    assert_eq!(name, "flopwatch-cuda\n");
    let of = |wanted: &str| calls.iter().position(|(name, ..)| name == wanted);
    let limit = calls
        .iter()
        .position(|(name, number, _)| name == "attribute" && *number == 2);
    assert!(limit.unwrap() < of("enable").unwrap());
    assert_eq!(calls[limit.unwrap() + 1].1, 8);
    assert!(of("subscribe") < of("register") && of("register") < of("enable"));
    let count = |wanted: &str| calls.iter().filter(|(name, ..)| name == wanted).count();
    assert_eq!((count("subscribe"), count("unsubscribe"), count("finalize")), (3, 3, 0));
    assert!(calls.iter().all(|(name, number, _)| name != "flush" || *number == 0));
    assert_eq!(count("enable"), count("disable"));
    assert!(program.end().success());
}

#[test]
fn our_thread_takes_no_signal_of_the_program_and_lets_it_change_who_it_is() {
    let (_rig, mut program, mut agent) = Agent::anew();
    agent.begin(Kinds::KERNELS);
    assert_eq!(program.ask("signal"), "signal 0 1");
    assert_eq!(program.ask("setuid"), "setuid 0");
    agent.end();
    assert!(program.end().success());
}

#[test]
fn the_copy_that_the_program_has_is_the_one_that_is_called() {
    let rig = Rig::new(1305);
    let theirs = rig.place(1304, "theirs");
    let mut program = rig.start();
    assert_eq!(program.ask(&format!("load {}", theirs.display())), "load 1");
    let mut agent = Agent::of(&rig);
    agent.begin(Kinds::KERNELS);
    assert_eq!(program.recorded("launch 10"), 10);
    agent.end();
    assert_eq!(agent.process(0).cupti_version, 130_401);
    assert!(!program.has_mapped("own/libcupti"));
    // A second copy beside it, and nothing is called any more.
    let second = rig.place(1303, "second");
    assert_eq!(program.ask(&format!("load {}", second.display())), "load 1");
    let before = rig.calls().len();
    if program.has_mapped("second/libcupti") {
        assert_eq!(refused(&mut agent), (Reason::TwoCopies, Holder::None, 0));
        assert_eq!(rig.calls().len(), before);
    }
}

#[test]
fn whoever_holds_the_subscription_is_named_by_its_libraries() {
    let rig = Rig::new(1305);
    let theirs = rig.place(1305, "theirs");
    let mut program = rig.start();
    assert_eq!(program.ask(&format!("hold {}", theirs.display())), "hold 0");
    let mut agent = Agent::of(&rig);
    assert_eq!(refused(&mut agent), (Reason::Held, Holder::Unknown, 39));
    let torch = rig.place_next("libtorch_cpu.so");
    assert_eq!(program.ask(&format!("load {}", torch.display())), "load 1");
    assert_eq!(refused(&mut agent), (Reason::Held, Holder::Pytorch, 39));
    let names = ["enable", "register", "unsubscribe"];
    assert!(rig.calls().iter().all(|(name, ..)| !names.contains(&name.as_str())));
    assert!(program.end().success());
}

#[test]
fn another_profiler_is_left_alone() {
    let rig = Rig::new(1305);
    let nsys = rig.place_next("libToolsInjection64.so");
    let mut program = rig.start();
    assert_eq!(program.ask(&format!("load {}", nsys.display())), "load 1");
    let mut agent = Agent::of(&rig);
    assert_eq!(refused(&mut agent), (Reason::OtherProfiler, Holder::NsightSystems, 0));
    assert!(!program.has_mapped("libcupti"));
}

#[test]
fn a_library_that_was_there_before_is_called_first_and_ours_never_twice() {
    let rig = Rig::new(1305);
    let next = rig.place_next("libnext.so");
    let rig = rig.with("FLOPWATCH_CUDA_NEXT", &next.display());
    let mut program = rig.start();
    let calls = rig.calls();
    assert_eq!(
        (calls.len(), calls[0].0.as_str(), calls[0].2),
        (1, "next", program.child.id())
    );
    let mut agent = Agent::of(&rig);
    agent.begin(Kinds::KERNELS);
    assert_eq!(program.recorded("launch 10"), 10);
    for wrong in ["libflopwatch_cuda.so", "no such library"] {
        let rig = Rig::new(1305);
        let path = rig.path(wrong);
        let rig = rig.with("FLOPWATCH_CUDA_NEXT", &path.display());
        let (mut program, mut agent) = Agent::started(&rig);
        agent.begin(Kinds::KERNELS);
        assert_eq!(program.recorded("launch 10"), 10);
        assert_eq!(agent.processes().len(), 1);
    }
}

#[test]
fn what_cannot_be_recorded_is_refused_with_its_reason_before_the_first_call() {
    let none = Rig::new(1305).with("FLOPWATCH_FAKE_DRIVER", &0);
    let program = none.start();
    assert_eq!(refused(&mut Agent::of(&none)).0, Reason::NoDriver);
    assert!(program.end().success());
    let missing = Rig::new(1305);
    std::fs::remove_file(missing.path("own/libcupti.so.13")).unwrap();
    let program = missing.start();
    let mut agent = Agent::of(&missing);
    assert_eq!(refused(&mut agent).0, Reason::NoCupti);
    // It is asked anew for each window.
    missing.place(1305, "own");
    agent.begin(Kinds::KERNELS);
    assert!(program.end().success());
    let old = Rig::new(1208).with("FLOPWATCH_FAKE_DRIVER", &13_000);
    let theirs = old.place(1208, "theirs");
    let mut program = old.start();
    assert_eq!(program.ask(&format!("load {}", theirs.display())), "load 1");
    assert_eq!(refused(&mut Agent::of(&old)).0, Reason::OtherMajor);
    assert!(old.calls().iter().all(|(name, ..)| name == "loaded"));
}

#[test]
fn cupti_13_2_is_never_called() {
    let rig = Rig::new(1302);
    let (mut program, mut agent) = Agent::started(&rig);
    for _ in 0..2 {
        assert_eq!(refused(&mut agent).0, Reason::ExcludedVersion);
    }
    assert!(rig.calls().iter().all(|(name, ..)| name == "loaded"));
    assert_eq!(program.ask("launch 10"), "recorded 0");
    assert_eq!(agent.process(0).count(Count::Windows), 0);
    assert!(program.end().success());
}
