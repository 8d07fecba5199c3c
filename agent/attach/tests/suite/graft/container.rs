//! A container as a runtime would make it, without a runtime: own mount, PID, network, IPC and UTS
//! namespaces, a small read-only root with a tmpfs at /tmp, user 1234, no capability, no_new_privs.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use flopwatch_attach::enter::Entry;
use flopwatch_attach::graft::{Candidate, LauncherScan, Target, waits};
use flopwatch_attach::own_cgroup::{self, Limits, OwnCgroup};
use flopwatch_attach::process::{ProcessId, Procfs};
use flopwatch_attach::reexec::Reexec;

/// What the tests need of this machine.
#[derive(Clone)]
pub(crate) struct Rig {
    pub(crate) launcher: PathBuf,
    pub(crate) workload: PathBuf,
    pub(crate) nsys_target: PathBuf,
    pub(crate) nsys_host: PathBuf,
    pub(crate) libraries: Vec<PathBuf>,
    pub(crate) reexec: Reexec,
}

/// What the agent's container has, and no more: not privileged, no right to override file modes.
const CAPABILITIES: &str = "-all,+sys_admin,+sys_ptrace,+sys_chroot,+setuid,+setgid,+setpcap,+dac_read_search,+kill";

impl Rig {
    /// Runs what is added to it with the agent's capabilities.
    pub(crate) fn as_the_agent() -> Command {
        let mut command = Command::new("setpriv");
        command
            .arg(format!("--bounding-set={CAPABILITIES}"))
            .arg("--inh-caps=-all");
        command
    }
}

/// The target and the host folder of Nsight Systems: `FLOPWATCH_NSYS` (the program) and
/// `FLOPWATCH_NSYS_HOST`, else Debian's.
fn tools() -> Option<(PathBuf, PathBuf)> {
    let named = |variable: &str| std::env::var_os(variable).map(PathBuf::from);
    let debian = PathBuf::from("/usr/lib");
    let program = named("FLOPWATCH_NSYS")
        .unwrap_or_else(|| debian.join("x86_64-linux-gnu/nsight-systems/target-linux-x64/nsys"))
        .canonicalize()
        .ok()?;
    let host = named("FLOPWATCH_NSYS_HOST").unwrap_or_else(|| debian.join("nsight-systems/host-linux-x64"));
    let importer = host.join("QdstrmImporter").exists();
    importer.then_some((program.parent()?.to_owned(), host))
}

/// The programs of ours that the tests run: the launcher and the workload. Whoever names both has
/// built the workspace.
fn programs() -> (PathBuf, PathBuf) {
    let named = |variable: &str| std::env::var_os(variable).map(PathBuf::from);
    let (launcher, workload) = (named("FLOPWATCH_LAUNCHER"), named("FLOPWATCH_WORKLOAD"));
    if let (Some(launcher), Some(workload)) = (&launcher, &workload) {
        return (launcher.clone(), workload.clone());
    }
    let target = target_folder();
    let builds: [&[&str]; 2] = [
        &["-p", "flopwatch-launcher", "-p", "flopwatch-sample-workload", "--bins"],
        &["-p", "flopwatch-attach", "--example", "reexec"],
    ];
    for build in builds {
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .args(["build", "--quiet", "--target-dir"])
            .arg(&target)
            .args(build);
        let status = cargo
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status()
            .expect("cargo runs");
        assert!(status.success(), "cannot build what the tests run: {build:?}");
    }
    let built = target.join("debug");
    (
        launcher.unwrap_or_else(|| built.join("flopwatch-launcher")),
        workload.unwrap_or_else(|| built.join("flopwatch-sample-workload")),
    )
}

/// `target/debug/deps/this-test` -> `target`.
fn target_folder() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    own.ancestors().nth(3).unwrap().to_owned()
}

/// The rig; none, with a printed reason, where the machine lacks something. Every container has
/// namespaces and folders of its own, so tests may run beside each other.
pub(crate) fn rig() -> Option<&'static Rig> {
    static RIG: OnceLock<Rig> = OnceLock::new();
    if !nix::unistd::geteuid().is_root() {
        println!("skipped: making namespaces as a runtime does needs root");
        return None;
    }
    let Some((nsys_target, nsys_host)) = tools() else {
        println!("skipped: no Nsight Systems (set FLOPWATCH_NSYS and FLOPWATCH_NSYS_HOST, or install Debian's)");
        return None;
    };
    Some(RIG.get_or_init(|| make(nsys_target, nsys_host)))
}

/// The same with the newer version that `FLOPWATCH_NSYS_NEWER` names; none, with a printed reason,
/// without it.
pub(crate) fn newer() -> Option<Rig> {
    let rig = rig()?;
    let Some(program) = std::env::var_os("FLOPWATCH_NSYS_NEWER").map(PathBuf::from) else {
        println!("skipped: no newer Nsight Systems (FLOPWATCH_NSYS_NEWER)");
        return None;
    };
    let target = program.parent()?.to_owned();
    Some(Rig {
        nsys_host: target.parent()?.join("host-linux-x64"),
        nsys_target: target,
        ..rig.clone()
    })
}

fn make(nsys_target: PathBuf, nsys_host: PathBuf) -> Rig {
    let (launcher, workload) = programs();
    // Every entry and every sandbox of the tests is made with the agent's capabilities only.
    let agent = target_folder().join("flopwatch-agent-rights.sh");
    let helper = target_folder().join("debug/examples/reexec");
    let script = format!(
        "#!/bin/sh\nexec setpriv --bounding-set={CAPABILITIES} --inh-caps=-all {} \"$@\"\n",
        helper.display()
    );
    std::fs::write(&agent, script).unwrap();
    std::fs::set_permissions(&agent, std::fs::Permissions::from_mode(0o755)).unwrap();
    let reexec = Reexec::new(agent);
    // Debian's importer finds libssh through a link that an unpacked package leaves dangling.
    let mut libraries = Vec::new();
    if !nsys_host.join("libssh.so").exists() {
        let folder = target_folder().join("importer-libraries");
        std::fs::create_dir_all(&folder).unwrap();
        if !folder.join("libssh.so").exists() {
            std::os::unix::fs::symlink("/usr/lib/x86_64-linux-gnu/libssh.so.4", folder.join("libssh.so")).unwrap();
        }
        libraries.push(folder);
    }
    Rig {
        launcher,
        workload,
        nsys_target,
        nsys_host,
        libraries,
        reexec,
    }
}

/// What the profiler may take in a test's container: what the agent gives it unless told otherwise.
pub(crate) const LIMITS: Limits = Limits {
    memory_bytes: 1 << 30,
    processes: 512,
    cpu_millis: 2000,
};

/// The folder of this process's cgroups, and how many containers are in it. Making it takes more
/// rights than the agent has; the last container removes it.
static CGROUPS: Mutex<u32> = Mutex::new(0);

fn cgroups() -> String {
    format!("flopwatch-test-{}", std::process::id())
}

/// A place among this process's cgroups, for one container.
pub(crate) struct Cgroup(pub(crate) OwnCgroup);

impl Cgroup {
    pub(crate) fn new(name: &str) -> Self {
        let root = PathBuf::from("/sys/fs/cgroup");
        let mut living = CGROUPS.lock().unwrap_or_else(PoisonError::into_inner);
        own_cgroup::make_parent(&root, &cgroups()).unwrap();
        *living += 1;
        Self(OwnCgroup {
            root,
            name: format!("{}/{name}", cgroups()),
            limits: LIMITS,
        })
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // What was killed is gone from its cgroup a moment later.
        for _ in 0..200 {
            if !matches!(self.0.remove(), Ok(false)) {
                break;
            }
            pause(Duration::from_millis(10));
        }
        let mut living = CGROUPS.lock().unwrap_or_else(PoisonError::into_inner);
        *living -= 1;
        if *living == 0 {
            own_cgroup::remove(&self.0.root, &cgroups()).ok();
        }
    }
}

/// Bounds of the launcher for tests in which it shall find its session, however busy the machine.
pub(crate) const PATIENT: [&str; 4] = ["--claim-seconds", "60", "--session-seconds", "60"];

/// What stands in for the profiler's command line tool.
pub(crate) enum Tools<'a> {
    Real,
    Missing,
    Script(&'a str),
}

/// How a container is made.
pub(crate) struct Spec<'a> {
    pub(crate) tools: Tools<'a>,
    /// Options of the launcher; none: the command runs as if unprepared.
    pub(crate) launcher: Option<&'a [&'a str]>,
    pub(crate) command: &'a [&'a str],
    pub(crate) environment: &'a [&'a str],
    pub(crate) stdin: &'a [u8],
    /// The pod's shared memory; none: this container's own.
    pub(crate) shared_memory: Option<&'a Path>,
}

impl Default for Spec<'_> {
    fn default() -> Self {
        Self {
            tools: Tools::Real,
            launcher: Some(&PATIENT),
            command: &[],
            environment: &["A=1", "PATH=/usr/bin:/bin"],
            stdin: b"",
            shared_memory: None,
        }
    }
}

impl<'a> Spec<'a> {
    /// A container that runs a command, prepared.
    pub(crate) fn of(command: &'a [&'a str]) -> Self {
        Self {
            command,
            ..Self::default()
        }
    }

    pub(crate) fn tools(self, tools: Tools<'a>) -> Self {
        Self { tools, ..self }
    }

    pub(crate) fn launcher(self, launcher: Option<&'a [&'a str]>) -> Self {
        Self { launcher, ..self }
    }

    pub(crate) fn environment(self, environment: &'a [&'a str]) -> Self {
        Self { environment, ..self }
    }

    pub(crate) fn stdin(self, stdin: &'a [u8]) -> Self {
        Self { stdin, ..self }
    }

    pub(crate) fn shared_memory(self, shared_memory: Option<&'a Path>) -> Self {
        Self { shared_memory, ..self }
    }

    pub(crate) fn start(&self, rig: &Rig) -> Container {
        Container::start_in(rig, self, tempfile::tempdir().unwrap())
    }
}

/// A running container; it ends with this value.
pub(crate) struct Container {
    pub(crate) unshare: Child,
    pub(crate) folder: tempfile::TempDir,
    pub(crate) started: Instant,
    pub(crate) cgroup: Cgroup,
}

/// The path of the workload in the container.
pub(crate) const WORKLOAD: &str = "/work/flopwatch-sample-workload";

const SETUP: &str = r#"
set -eu
root=$1/root tools=$1/tools run=$1/run work=$2 nsys=$3 memory=$4
shift 4
mount --make-rprivate /
mount -t tmpfs none "$root"
cd "$root"
mkdir -p usr proc sys dev/shm tmp etc flopwatch/tools flopwatch/run work old
for link in bin lib lib64 sbin; do ln -s "usr/$link" "$link"; done
mount --bind /usr usr
mount -o remount,bind,ro usr
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
for device in null zero urandom; do : > dev/$device; mount --bind /dev/$device dev/$device; done
if [ -n "$memory" ]; then mount --bind "$memory" dev/shm; else mount -t tmpfs -o mode=1777 none dev/shm; fi
mount -t tmpfs -o mode=1777 none tmp
mount --bind "$tools" flopwatch/tools
if [ -n "$nsys" ]; then mount --bind "$nsys" flopwatch/tools/target-linux-x64; fi
mount -o remount,bind,ro flopwatch/tools
mount --bind "$run" flopwatch/run
mount --bind "$work" work
mount -o remount,bind,ro work
hostname container
# As every pod's network has it; the profiler talks to its library over loopback.
ip link set lo up
mount -o remount,ro .
pivot_root . old
umount -l /old
cd /
exec setpriv --reuid 1234 --regid 1234 --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all env -i --default-signal "$@"
"#;

impl Container {
    /// The sample workload, prepared.
    pub(crate) fn workload(rig: &Rig) -> Self {
        Spec::of(&[WORKLOAD]).start(rig)
    }

    /// Starts a command as it is, with no launcher before it.
    pub(crate) fn bare(rig: &Rig, command: &[&str]) -> Self {
        Spec::of(command).launcher(None).start(rig)
    }

    /// Starts a command that sleeps, and waits until it does.
    pub(crate) fn asleep(rig: &Rig) -> Self {
        let container = Self::bare(rig, &["/bin/sleep", "600"]);
        wait_for("the container's command", || {
            let name = std::fs::read_to_string(format!("/proc/{}/comm", container.init().pid)).ok()?;
            (name == "sleep\n").then_some(())
        });
        container
    }

    /// A shell of this machine's in the container, as the agent runs its launcher there.
    pub(crate) fn entry(&self, script: &str) -> Entry {
        Entry {
            proc_root: "/proc".into(),
            process: self.init(),
            volumes: None,
            cgroup: Some(self.cgroup.0.clone()),
            program: "/bin/sh".into(),
            arguments: vec!["sh".into(), "-c".into(), script.into()],
            environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
            deadline: Duration::from_mins(1),
            detach: false,
        }
    }

    /// Starts it over the folder of an earlier life, as a restarted container of the same pod.
    pub(crate) fn start_in(rig: &Rig, spec: &Spec<'_>, folder: tempfile::TempDir) -> Self {
        let at = |name: &str| folder.path().join(name);
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        for name in ["root", "tools/target-linux-x64", "run", "out"] {
            std::fs::create_dir_all(at(name)).unwrap();
        }
        // As the kubelet makes an emptyDir.
        std::fs::set_permissions(at("run"), std::fs::Permissions::from_mode(0o777)).unwrap();
        let installed = Command::new(&rig.launcher)
            .arg("install")
            .arg(at("tools"))
            .stdout(Stdio::null())
            .status()
            .unwrap();
        assert!(installed.success());
        let nsys = match spec.tools {
            Tools::Real => rig.nsys_target.to_str().unwrap(),
            Tools::Missing => "",
            Tools::Script(script) => {
                let file = at("tools/target-linux-x64/nsys");
                std::fs::write(&file, script).unwrap();
                std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
                ""
            }
        };
        let out = std::fs::File::create(at("out/stdout")).unwrap();
        let err = std::fs::File::create(at("out/stderr")).unwrap();
        let mut command = Command::new("unshare");
        command.args([
            "--mount",
            "--pid",
            "--net",
            "--ipc",
            "--uts",
            "--fork",
            "--kill-child",
            "sh",
            "-c",
            SETUP,
            "sh",
        ]);
        command
            .arg(folder.path())
            .arg(rig.workload.parent().unwrap())
            .arg(nsys)
            .arg(spec.shared_memory.unwrap_or(Path::new("")))
            .args(spec.environment);
        if let Some(options) = spec.launcher {
            command
                .args(["/flopwatch/tools/launcher", "run"])
                .args(options)
                .arg("--");
        }
        command.args(spec.command).stdin(Stdio::piped()).stdout(out).stderr(err);
        let started = Instant::now();
        let mut unshare = command.spawn().unwrap();
        unshare.stdin.take().unwrap().write_all(spec.stdin).unwrap();
        let name = format!("container-{}", unshare.id());
        Self {
            unshare,
            folder,
            started,
            cgroup: Cgroup::new(&name),
        }
    }

    /// The container's PID 1 as the host sees it.
    pub(crate) fn init(&self) -> ProcessId {
        let pid = wait_for("the container's PID 1", || self.children().first().copied());
        Procfs::default().identify(pid).unwrap()
    }

    /// What `unshare` started: PID 1, once it has.
    fn children(&self) -> Vec<i32> {
        children(self.unshare.id().try_into().unwrap())
    }

    /// Does what the agent does until the launcher is found.
    pub(crate) fn target(&self, rig: &Rig) -> Target {
        let init = self.init();
        waiting(|candidate| candidate.process == init);
        self.way_in(rig, init)
    }

    /// The way in through one of its processes, as the agent goes it.
    pub(crate) fn way_in(&self, rig: &Rig, process: ProcessId) -> Target {
        Target {
            reexec: rig.reexec.clone(),
            procfs: Procfs::default(),
            process,
            launcher: rig.launcher.clone(),
            run_dir: "/flopwatch/run".into(),
            tools_dir: "/flopwatch/tools".into(),
            volumes: None,
            cgroup: Some(self.cgroup.0.clone()),
        }
    }

    /// A file of the folder that the container is made over.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn stdout(&self) -> String {
        std::fs::read_to_string(self.file("out/stdout")).unwrap()
    }

    pub(crate) fn state(&self) -> String {
        wait_for("the launcher's state", || {
            std::fs::read_to_string(self.file("run/state")).ok()
        })
    }

    pub(crate) fn signal(&self, signal: nix::sys::signal::Signal) {
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(self.init().pid), signal).unwrap();
    }

    /// Waits for its end.
    pub(crate) fn end(&mut self) -> ExitStatus {
        wait_for("the container's end", || self.unshare.try_wait().unwrap())
    }

    /// Asks it to end, and waits until it has, which must be with that code.
    #[track_caller]
    pub(crate) fn terminates(&mut self, code: i32) {
        self.signal(nix::sys::signal::Signal::SIGTERM);
        assert_eq!(self.end().code(), Some(code));
    }

    /// Waits for its end and gives its folder on.
    pub(crate) fn finish(mut self) -> tempfile::TempDir {
        self.end();
        std::mem::replace(&mut self.folder, tempfile::tempdir().unwrap())
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let read = |name: &str| std::fs::read_to_string(self.file(name)).unwrap_or_default();
            let tail: Vec<String> = self.stdout().lines().rev().take(5).map(str::to_owned).collect();
            eprintln!("stdout (last lines first): {tail:#?}\nstderr: {}", read("out/stderr"));
            eprintln!(
                "state: {}\nfailed: {}\nlog: {}",
                read("run/state"),
                read("run/failed"),
                read("run/keeper.log")
            );
        }
        // The kill that unshare passes on does not survive the change of user: the container's PID
        // 1 is ended itself.
        for pid in self.children() {
            nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL).ok();
        }
        self.unshare.kill().ok();
        self.unshare.wait().ok();
    }
}

/// The processes that a process started and that have not been reaped.
pub(crate) fn children(of: i32) -> Vec<i32> {
    let children = std::fs::read_to_string(format!("/proc/{of}/task/{of}/children")).unwrap_or_default();
    children.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// Waits until such a launcher waits; returns its process.
pub(crate) fn waiting(is_it: impl Fn(&Candidate) -> bool) -> ProcessId {
    let procfs = Procfs::default();
    let mut scan = LauncherScan::new(procfs.clone());
    wait_for("the waiting launcher", || {
        let found = scan.scan().unwrap().into_iter().find(&is_it)?;
        waits(&procfs, &found, None).map(|_protocol| found.process)
    })
}

/// Asks until there is an answer, at most two minutes: a machine may be busy, or its disk.
pub(crate) fn wait_for<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_mins(2);
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < deadline, "waited too long for {what}");
        pause(Duration::from_millis(10));
    }
}

/// Waits until something holds, as long as [`wait_for`] asks.
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    wait_for(what, || holds().then_some(()));
}

#[allow(clippy::disallowed_methods, reason = "tests have no runtime")]
pub(crate) fn pause(time: Duration) {
    std::thread::sleep(time);
}
