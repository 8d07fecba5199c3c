//! Folders and programs that the tests make sandboxes with.

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use flopwatch_attach::process::Procfs;
use flopwatch_attach::reexec::{Output, Reexec};
use flopwatch_attach::sandbox::{self, MemoryBound, Sandboxed};
use tempfile::TempDir;

/// What the agent's container has, and no more.
pub(crate) const CAPABILITIES: &str =
    "-all,+sys_admin,+sys_ptrace,+sys_chroot,+setuid,+setgid,+setpcap,+dac_read_search,+kill";
/// An ordinary user, without a right.
pub(crate) const ORDINARY: &str =
    "exec setpriv --reuid 74321 --regid 74321 --clear-groups --bounding-set=-all --inh-caps=-all HELPER";
/// User of a tool, where a test does not name another.
pub(crate) const USER: u32 = 74_321;

/// `target/debug/deps/this-test` -> `target`.
fn target_folder() -> PathBuf {
    std::env::current_exe().unwrap().ancestors().nth(3).unwrap().to_owned()
}

/// The program that the sandboxes are made with; none, with a printed reason, without root.
fn helper() -> Option<&'static Path> {
    static HELPER: OnceLock<PathBuf> = OnceLock::new();
    if !nix::unistd::geteuid().is_root() {
        println!("skipped: giving the agent's rights to a program needs root");
        return None;
    }
    Some(HELPER.get_or_init(|| {
        let target = target_folder();
        // Whoever names the launcher has built the workspace.
        if std::env::var_os("FLOPWATCH_LAUNCHER").is_some() {
            return target.join("debug/examples/reexec");
        }
        let built = Command::new(env!("CARGO"))
            .args([
                "build",
                "--quiet",
                "-p",
                "flopwatch-attach",
                "--example",
                "reexec",
                "--target-dir",
            ])
            .arg(&target)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status()
            .unwrap();
        assert!(built.success(), "cannot build what the tests run");
        target.join("debug/examples/reexec")
    }))
}

/// Folders as the agent has them, and what is none of a converter's business in them.
pub(crate) struct Rig {
    folder: TempDir,
    pub(crate) helper: &'static Path,
}

impl Rig {
    pub(crate) fn new() -> Option<Self> {
        let helper = helper()?;
        let folder = tempfile::tempdir().unwrap();
        let rig = Self { folder, helper };
        std::fs::set_permissions(rig.folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
        for made in ["tls", "spool/other/work", "spool/own/work"] {
            std::fs::create_dir_all(rig.at(made)).unwrap();
        }
        std::fs::write(rig.at("tls/tls.key"), "the key\n").unwrap();
        std::fs::set_permissions(rig.at("tls/tls.key"), PermissionsExt::from_mode(0o644)).unwrap();
        std::fs::write(rig.at("spool/other/work/secret"), "another's\n").unwrap();
        std::fs::set_permissions(rig.at("spool/other/work"), PermissionsExt::from_mode(0o777)).unwrap();
        std::fs::write(rig.at("spool/own/input"), "foreign\n").unwrap();
        Some(rig)
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A way to start the helper: a script whose last word is the helper.
    pub(crate) fn started_by(&self, name: &str, line: &str) -> Reexec {
        let script = self.at(name);
        let helper = self.helper.display();
        let line = line.replace("HELPER", &format!("{helper} \"$@\""));
        // By another process: a child that a test beside this one forks would hold the file open
        // for writing, and what is open so cannot be executed.
        let written = Command::new("sh")
            .args([
                "-c",
                "printf '#!/bin/sh\\n%s\\n' \"$1\" >\"$2\" && chmod 755 \"$2\"",
                "sh",
                &line,
            ])
            .arg(&script)
            .status();
        assert!(written.unwrap().success());
        Reexec::new(script)
    }

    pub(crate) fn agent(&self) -> Reexec {
        self.started_by(
            "agent",
            &format!("exec setpriv --bounding-set={CAPABILITIES} --inh-caps=-all HELPER"),
        )
    }

    /// Runs a tool with the agent's rights; what came of it, and what it said.
    pub(crate) fn run(&self, tool: &Sandboxed) -> (Output, String) {
        let output = sandbox::run(&self.agent(), tool).unwrap();
        let message = text(&output);
        (output, message)
    }

    /// A script in the place of a converter.
    pub(crate) fn tool(&self, script: &str) -> Sandboxed {
        self.tool_as(USER, script)
    }

    /// The same as another user.
    pub(crate) fn tool_as(&self, user: u32, script: &str) -> Sandboxed {
        let directory = self.at("spool/own/work");
        chown(&directory, Some(user), Some(user)).unwrap();
        Sandboxed {
            command: ["/bin/sh", "-c", script].map(str::to_owned).into(),
            environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
            directory,
            readable: vec![self.at("spool/own/input")],
            gpu: false,
            user,
            memory_bytes: 4 << 30,
            memory: MemoryBound::AddressSpace,
            cgroups: None,
            file_bytes: 1 << 30,
            processes: 64,
            cpu_seconds: 60,
            deadline: Duration::from_mins(1),
            whole: true,
        }
    }

    /// A tool that tries to see what is not its own, and says what it saw.
    pub(crate) fn curious(&self) -> Sandboxed {
        let [key, other, input] = ["tls/tls.key", "spool/other", "spool/own/input"].map(|name| self.at(name));
        self.tool(&format!(
            "for file in {} {} /etc/passwd /etc/shadow /proc/1/environ /proc/1/root/etc/passwd; do
               if [ -e $file ]; then echo sees $file; fi; if cat $file; then echo reads $file; fi; done 2>/dev/null
             for folder in / /root /home /var /run {}; do ls -A $folder 2>/dev/null; done | sed 's/^/entry /'
             for process in /proc/[0-9]*; do echo process $(cat $process/comm); done
             cat {}; echo out > made; echo no > {} || echo read-only
             (echo no > /usr/planted || echo no > /proc/sys/kernel/core_pattern || echo read-only) 2>&1",
            key.display(),
            other.join("work/secret").display(),
            other.display(),
            input.display(),
            input.display(),
        ))
    }
}

pub(crate) fn text(output: &Output) -> String {
    let both = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    format!("{:?} {:?}\n{}", output.end, output.missing, both.join("\n"))
}

#[expect(clippy::disallowed_methods, reason = "tests have no runtime")]
pub(crate) fn wait_for<T>(what: &str, mut inspect: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = inspect() {
            return found;
        }
        assert!(begin.elapsed() < Duration::from_mins(1), "no {what} within a minute");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The processes of a user, as the host sees them.
pub(crate) fn running_as(user: u32) -> Vec<i32> {
    let of_user = |pid: &i32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        status.contains(&format!("\nUid:\t{user}\t"))
    };
    Procfs::default().pids().unwrap().into_iter().filter(of_user).collect()
}
