//! What a container can make of being entered: a forged launcher, devices, limits, system calls.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use flopwatch_attach::enter::{self, Entry};
use flopwatch_attach::graft::{Candidate, waits};
use flopwatch_attach::process::Procfs;
use flopwatch_attach::reexec::{End, Output, ReexecError};
use nix::sys::stat::{Mode, SFlag, makedev, mknod, umask};

use super::container::{Container, LIMITS, Rig, Spec, Tools, rig, wait_for, wait_until};
use super::options;

/// A shell in a launcher's place: its name, its words and its file are what an agent looks for.
fn forger(words: &str) -> String {
    format!(
        "cp /bin/sh /tmp/launcher; cd /tmp; \
         echo 'echo pid=1 > /flopwatch/run/waiting; while :; do sleep 0.1; done' > run; \
         exec /tmp/launcher {words}"
    )
}

/// Starts a container whose command is that forger, and waits until it looks like a launcher that
/// waits.
fn forged(rig: &Rig, words: &str) -> (Container, Candidate) {
    let script = forger(words);
    let container = Spec::of(&["/bin/sh", "-c", &script])
        .tools(Tools::Script("#!/bin/sh\nexit 1\n"))
        .launcher(None)
        .start(rig);
    wait_until("the forged launcher", || container.file("run/waiting").exists());
    let candidate = Candidate {
        process: container.init(),
        container: None,
    };
    (container, candidate)
}

/// Runs a shell of this machine in the container, as the agent runs its launcher.
fn enter(rig: &Rig, container: &Container, script: &str, change: impl Fn(&mut Entry)) -> Result<Output, ReexecError> {
    let mut entry = container.entry(script);
    change(&mut entry);
    enter::run(&rig.reexec, &entry)
}

#[test]
fn a_forged_launcher_in_a_container_is_never_executed() {
    let Some(rig) = rig() else { return };
    let (container, candidate) = forged(rig, "run --");
    assert!(
        waits(&Procfs::default(), &candidate, None).is_some(),
        "the forgery is none"
    );
    // What the agent of before executed.
    let launcher = container.file("tools/launcher");
    std::fs::remove_file(&launcher).unwrap();
    std::fs::write(&launcher, "#!/bin/sh\ntouch /flopwatch/run/forged-$$\n").unwrap();
    std::fs::set_permissions(&launcher, Permissions::from_mode(0o755)).unwrap();
    let target = container.way_in(rig, candidate.process);
    target.start_session(&options()).unwrap();
    let failed = wait_for("the supervisor's last word", || target.failure());
    assert!(failed.contains("exit code 1"), "{failed}");
    target.release().ok();
    target.refuse("no session").unwrap();
    let left: Vec<String> = std::fs::read_dir(container.file("run"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(!left.iter().any(|name| name.starts_with("forged")), "{left:?}");
    assert!(left.contains(&"claimed".to_owned()), "nothing of ours ran: {left:?}");
}

#[test]
fn a_launcher_that_names_folders_of_its_own_is_left_alone() {
    let Some(rig) = rig() else { return };
    for words in ["run --tools-dir /tmp --", "run --run-dir /tmp --"] {
        let (_container, candidate) = forged(rig, words);
        assert_eq!(waits(&Procfs::default(), &candidate, None), None, "{words}");
    }
}

#[test]
fn what_enters_a_container_cannot_open_a_device_that_the_container_cannot() {
    let Some(rig) = rig() else { return };
    let container = Container::asleep(rig);
    // As a container's root with CAP_MKNOD makes it: the node is anybody's, and only the cgroup
    // forbids to open it.
    let node = format!("/proc/{}/root/tmp/fuse", container.init().pid);
    let before = umask(Mode::empty());
    mknod(
        node.as_str(),
        SFlag::S_IFCHR,
        Mode::from_bits_truncate(0o666),
        makedev(10, 229),
    )
    .unwrap();
    umask(before);
    let open =
        "(exec 3<>/tmp/fuse) && echo opened; (exec 3<>/dev/null) && echo harmless; head -c 1 /dev/urandom | wc -c";
    let unbounded = enter(rig, &container, open, |entry| entry.cgroup = None).unwrap();
    let text = String::from_utf8_lossy(&unbounded.stdout).into_owned();
    assert_eq!(
        text, "opened\nharmless\n1\n",
        "this machine does not open it in any case"
    );
    for _again in 0..2 {
        let bounded = enter(rig, &container, open, |_| {}).unwrap();
        let text = String::from_utf8_lossy(&bounded.stdout).into_owned();
        assert_eq!(text, "harmless\n1\n");
        assert!(
            bounded.last_words().contains("not permitted"),
            "{}",
            bounded.last_words()
        );
    }
}

#[test]
fn what_enters_a_container_has_bounded_memory_processes_and_processor_time() {
    let Some(rig) = rig() else { return };
    let container = Container::asleep(rig);
    let run = |script: &str| {
        enter(rig, &container, script, |entry| {
            if let Some(cgroup) = &mut entry.cgroup {
                cgroup.limits.memory_bytes = 64 << 20;
                cgroup.limits.processes = 12;
                cgroup.limits.cpu_millis = 250;
            }
        })
        .unwrap()
    };
    assert!(run("python3 -c 'x = bytes(8_000_000)'").success());
    // The shell is its program: what the kernel ends is what was started.
    let killed = run("exec python3 -c 'x = bytearray(200_000_000)'").end;
    assert_eq!(killed, End::Signaled(9));
    let forks = run("for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do sleep 1 & done; wait");
    assert!(
        !forks.success() && !forks.stderr.is_empty(),
        "sixteen processes in a place for twelve"
    );
    let of = |file: &str| {
        let roots = ["", "cpu", "cpu,cpuacct"].map(|hierarchy| container.cgroup.0.root.join(hierarchy));
        let files = roots.map(|root| root.join(&container.cgroup.0.name).join(file));
        files.iter().find_map(|file| std::fs::read_to_string(file).ok())
    };
    let quota = of("cpu.max").or_else(|| of("cpu.cfs_quota_us")).expect("a quota");
    assert!(quota.starts_with("25000"), "{quota}");
    // What has ended counts too, and what the container does itself does not.
    let before = container.cgroup.0.processor_time().unwrap();
    assert!(run("turn=0; while [ $turn -lt 100000 ]; do turn=$((turn+1)); done").success());
    let since = || container.cgroup.0.processor_time().unwrap().saturating_sub(before);
    let used = since();
    assert!(
        used > Duration::from_millis(20) && used < Duration::from_secs(20),
        "{used:?}"
    );
    let quiet = since();
    assert!(quiet < used + Duration::from_millis(5), "{quiet:?} after {used:?}");
}

#[test]
fn what_enters_a_container_is_below_a_filter_of_system_calls() {
    let Some(rig) = rig() else { return };
    let container = Container::asleep(rig);
    let script = "grep -E '^(Seccomp|NoNewPrivs|SigBlk|SigIgn):' /proc/self/status; unshare --user true 2>&1; \
                  keyctl show 2>&1 >/dev/null; mount -t tmpfs none /tmp 2>&1; true";
    let text = String::from_utf8(enter(rig, &container, script, |_| {}).unwrap().stdout).unwrap();
    assert!(
        text.contains("Seccomp:\t2\n") && text.contains("NoNewPrivs:\t1\n"),
        "{text}"
    );
    assert!(text.contains("SigBlk:\t0000000000000000\n"), "{text}");
    let ignored = text.lines().find_map(|line| line.strip_prefix("SigIgn:\t")).unwrap();
    let broken_pipe = 1 << 12;
    assert_eq!(u64::from_str_radix(ignored, 16).unwrap() & broken_pipe, 0, "{text}");
    assert!(text.contains("unshare") && text.contains("not permitted"), "{text}");
}

#[test]
fn where_bounds_cannot_be_set_nothing_enters() {
    let Some(rig) = rig() else { return };
    let container = Container::asleep(rig);
    let empty = tempfile::tempdir().unwrap();
    let refused = enter(rig, &container, "touch /flopwatch/run/entered", |entry| {
        if let Some(cgroup) = &mut entry.cgroup {
            cgroup.root = empty.path().to_owned();
        }
    });
    let error = refused.unwrap_err();
    assert!(
        matches!(&error, ReexecError::Stage { stage, .. } if stage == "join the cgroup"),
        "{error}"
    );
    let refused = enter(rig, &container, "touch /flopwatch/run/entered", |entry| {
        entry.volumes = Some(flopwatch_attach::volumes::KubeletVolumes::unknown());
    });
    let error = refused.unwrap_err();
    assert!(error.to_string().contains("volumes"), "{error}");
    assert!(!container.file("run/entered").exists());
}

#[test]
fn a_session_lives_within_its_bounds() {
    let Some(rig) = rig() else { return };
    let container = Container::workload(rig);
    let target = container.target(rig);
    assert_eq!(target.cgroup.as_ref().map(|cgroup| cgroup.limits), Some(LIMITS));
    target.start_session(&options()).unwrap();
    assert!(target.await_state(Duration::from_mins(1)).unwrap().grafted);
    for pid in super::members(container.init().pid) {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        assert!(status.is_empty() || status.contains("Seccomp:\t2\n"), "{status}");
    }
}
