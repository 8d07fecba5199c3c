//! What devices a profiler may open: the harmless ones that every container has, and of the GPUs'
//! those that the container it is in may open itself.
//!
//! Never more than the container. What was granted is read from the kernel, not from what the
//! container says of itself (its nodes and `NVIDIA_VISIBLE_DEVICES` are its own to write): version
//! 1 shows a container's rules, and ours are picked from them. Version 2 has programs that nobody
//! can read, but anybody with the agent's rights can attach them once more: our cgroup gets every
//! program that holds for the container, and one of ours beside them. The kernel opens only what
//! all of them allow.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;

use crate::bpf::{self, Instruction};

/// A character device that may be read and written, not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rule {
    major: u32,
    /// None: every one.
    minor: Option<u32>,
    read: bool,
    write: bool,
}

impl Rule {
    const fn both(major: u32, minor: Option<u32>) -> Self {
        Self {
            major,
            minor,
            read: true,
            write: true,
        }
    }
}

/// A line of `devices.allow` and `devices.list`.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "c {}:", self.major)?;
        match self.minor {
            Some(minor) => write!(f, "{minor}")?,
            None => f.write_str("*")?,
        }
        f.write_str(" ")?;
        if self.read {
            f.write_str("r")?;
        }
        if self.write {
            f.write_str("w")?;
        }
        Ok(())
    }
}

/// null, zero, full, random, urandom, tty, ptmx, and the terminals behind it: what every runtime
/// gives every container.
const HARMLESS: [Rule; 8] = [
    Rule::both(1, Some(3)),
    Rule::both(1, Some(5)),
    Rule::both(1, Some(7)),
    Rule::both(1, Some(8)),
    Rule::both(1, Some(9)),
    Rule::both(5, Some(0)),
    Rule::both(5, Some(2)),
    Rule::both(136, None),
];

/// Major numbers of the GPU driver's character devices, from the text of `/proc/devices`. Only the
/// driver itself takes these names.
pub(crate) fn gpu_majors(devices: &str) -> BTreeSet<u32> {
    devices
        .lines()
        .take_while(|line| !line.starts_with("Block"))
        .filter_map(|line| line.trim().split_once(' '))
        .filter(|(_, name)| name.trim_start().starts_with("nvidia"))
        .filter_map(|(major, _)| major.parse().ok())
        .collect()
}

/// The lines of our cgroup, from those of the container's (`devices.list`).
fn rules(container: &str, gpus: &BTreeSet<u32>) -> BTreeSet<Rule> {
    let granted = container.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (kind, number, access) = (words.next()?, words.next()?, words.next()?);
        let (major, minor) = number.split_once(':')?;
        let all = match major {
            "*" => true,
            _ => gpus.contains(&major.parse().ok()?),
        };
        if !all || !matches!(kind, "a" | "c") {
            return None;
        }
        let minor = match minor {
            "*" => None,
            number => Some(number.parse().ok()?),
        };
        let (read, write) = (access.contains('r'), access.contains('w'));
        let majors: Vec<u32> = match major {
            "*" => gpus.iter().copied().collect(),
            number => vec![number.parse().ok()?],
        };
        let rules = majors.into_iter().map(move |major| Rule {
            major,
            minor,
            read,
            write,
        });
        (read || write).then(|| rules.collect::<Vec<_>>())
    });
    HARMLESS.into_iter().chain(granted.flatten()).collect()
}

/// Bounds a cgroup of version 1 before anything is in it. `own` is its folder in the hierarchy of
/// devices, `container` that of the container. Safe to run again.
pub(crate) fn bound_v1(own: &Path, container: &Path, gpus: &BTreeSet<u32>) -> Result<(), String> {
    let read = |folder: &Path| {
        let file = folder.join("devices.list");
        std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))
    };
    let write = |name: &str, line: &str| {
        let file = own.join(name);
        std::fs::write(&file, line).map_err(|error| format!("{}: {line}: {error}", file.display()))
    };
    let wanted: BTreeSet<String> = rules(&read(container)?, gpus).iter().map(Rule::to_string).collect();
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
    // What runs in it already would lose its devices for a moment if they were all denied again.
    if lines(&read(own)?) == wanted {
        return Ok(());
    }
    write("devices.deny", "a")?;
    for line in &wanted {
        write("devices.allow", line)?;
    }
    let found = read(own)?;
    if lines(&found) == wanted {
        Ok(())
    } else {
        Err(format!("{}: the rules are {found:?} instead", own.display()))
    }
}

/// The same for a cgroup of version 2.
pub(crate) fn bound_v2(own: &Path, container: &Path, gpus: &BTreeSet<u32>) -> Result<(), String> {
    let open = |folder: &Path| File::open(folder).map_err(|error| format!("{}: {error}", folder.display()));
    let failed = |what: &'static str| move |error: std::io::Error| format!("{what}: {error}");
    let (own, container) = (open(own)?, open(container)?);
    let theirs = bpf::attached(container.as_fd(), true).map_err(failed("read the container's device programs"))?;
    let theirs: BTreeSet<u32> = theirs.into_iter().collect();
    let ours = bpf::attached(own.as_fd(), true).map_err(failed("read the device programs"))?;
    let ours: BTreeSet<u32> = ours.into_iter().collect();
    // Ours before theirs: who enters meanwhile by another thread's doing is bounded by it in any
    // case.
    let direct = bpf::attached(own.as_fd(), false).map_err(failed("read the device programs"))?;
    if direct.iter().all(|number| theirs.contains(number)) {
        let program = bpf::load(&program(gpus)).map_err(failed("load the device program"))?;
        bpf::attach(own.as_fd(), program.as_fd()).map_err(failed("attach the device program"))?;
    }
    for number in theirs.difference(&ours) {
        let program = bpf::program(*number).map_err(failed("open the container's device program"))?;
        bpf::attach(own.as_fd(), program.as_fd()).map_err(failed("attach the container's device program"))?;
    }
    Ok(())
}

/// A device program that allows the harmless devices and those of the GPU driver, to be read and
/// written.
fn program(gpus: &BTreeSet<u32>) -> Vec<Instruction> {
    /// `BPF_DEVCG_DEV_CHAR` and `BPF_DEVCG_ACC_MKNOD` in the context's first word: the kind below,
    /// the access above.
    const CHARACTER: i32 = 2;
    const MAKE: i32 = 1;
    const LOAD_WORD: u8 = 0x61;
    const COPY: u8 = 0xbf;
    const AND: u8 = 0x57;
    const SHIFT_RIGHT: u8 = 0x77;
    const SET: u8 = 0xb7;
    const IF_EQUAL: u8 = 0x15;
    const IF_ANY_BIT: u8 = 0x45;
    const IF_NOT_EQUAL: u8 = 0x55;
    const EXIT: u8 = 0x95;
    let step = |code, registers, offset, immediate| Instruction {
        code,
        registers,
        offset,
        immediate,
    };
    let number = |value: u32| i32::from_ne_bytes(value.to_ne_bytes());
    // 1: the context; 2: kind; 3: access; 4: major; 5: minor.
    let mut steps = vec![
        step(LOAD_WORD, 0x12, 0, 0),
        step(COPY, 0x23, 0, 0),
        step(AND, 0x02, 0, 0xffff),
        step(SHIFT_RIGHT, 0x03, 0, 16),
        step(LOAD_WORD, 0x14, 4, 0),
        step(LOAD_WORD, 0x15, 8, 0),
        // Refused: neither a character device nor to be made.
        step(IF_EQUAL, 0x02, 2, CHARACTER),
        step(SET, 0x00, 0, 0),
        step(EXIT, 0x00, 0, 0),
        step(IF_ANY_BIT, 0x03, -3, MAKE),
    ];
    let gpus = gpus.iter().map(|major| Rule::both(*major, None));
    for rule in HARMLESS.into_iter().chain(gpus) {
        match rule.minor {
            None => steps.push(step(IF_NOT_EQUAL, 0x04, 2, number(rule.major))),
            Some(minor) => steps.extend([
                step(IF_NOT_EQUAL, 0x04, 3, number(rule.major)),
                step(IF_NOT_EQUAL, 0x05, 2, number(minor)),
            ]),
        }
        steps.extend([step(SET, 0x00, 0, 1), step(EXIT, 0x00, 0, 0)]);
    }
    steps.extend([step(SET, 0x00, 0, 0), step(EXIT, 0x00, 0, 0)]);
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICES: &str = "Character devices:\n  1 mem\n 10 misc\n195 nvidia\n195 nvidiactl\n236 nvidia-uvm\n\nBlock devices:\n  7 nvidia-loop\n";

    fn lines(container: &str) -> Vec<String> {
        let rules = rules(container, &gpu_majors(DEVICES));
        rules.difference(&HARMLESS.into()).map(Rule::to_string).collect()
    }

    #[test]
    fn the_drivers_own_numbers_are_told_from_all_others() {
        assert_eq!(gpu_majors(DEVICES), BTreeSet::from([195, 236]));
    }

    #[test]
    fn a_profiler_gets_of_the_gpus_what_its_container_has_and_of_the_rest_nothing() {
        let container = "c *:* m\nb *:* m\nc 1:3 rwm\nc 10:229 rwm\nc 195:255 rw\nc 195:0 rwm\nc 236:0 r\nb 8:0 rwm\n";
        assert_eq!(lines(container), ["c 195:0 rw", "c 195:255 rw", "c 236:0 r"]);
        assert_eq!(lines("c 10:229 rwm"), [""; 0]);
        // A privileged container may open every device; its profiler those of the GPUs.
        assert_eq!(lines("a *:* rwm"), ["c 195:* rw", "c 236:* rw"]);
        assert_eq!(lines(""), [""; 0]);
    }

    /// A hierarchy of version 2 with two cgroups in it, one of them "the container's"; none where
    /// that cannot be had.
    struct Unified {
        folder: std::path::PathBuf,
    }

    impl Unified {
        fn new() -> Option<Self> {
            let roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
            let root = roots
                .map(Path::new)
                .into_iter()
                .find(|root| root.join("cgroup.controllers").exists());
            let Some(root) = root.filter(|_| nix::unistd::geteuid().is_root()) else {
                println!("skipped: device programs want root and cgroups of version 2");
                return None;
            };
            let folder = root.join(format!("flopwatch-devices-{}", std::process::id()));
            for name in ["container", "own"] {
                std::fs::create_dir_all(folder.join(name)).unwrap();
            }
            Some(Self { folder })
        }

        fn at(&self, name: &str) -> std::path::PathBuf {
            self.folder.join(name)
        }

        /// Whether a program in that cgroup opens that character device.
        fn opens(&self, name: &str, major: u64, minor: u64) -> bool {
            let node = std::env::temp_dir().join(format!("flopwatch-node-{}-{major}-{minor}", std::process::id()));
            let mode = nix::sys::stat::Mode::from_bits_truncate(0o600);
            let device = nix::sys::stat::makedev(major, minor);
            nix::sys::stat::mknod(&node, nix::sys::stat::SFlag::S_IFCHR, mode, device).unwrap();
            let script = format!(
                "echo 0 > {}/cgroup.procs && exec 3< {}",
                self.at(name).display(),
                node.display()
            );
            let shell = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
            std::fs::remove_file(&node).unwrap();
            let message = String::from_utf8_lossy(&shell.stderr);
            assert!(shell.status.success() || message.contains("not permitted"), "{message}");
            shell.status.success()
        }
    }

    impl Drop for Unified {
        fn drop(&mut self) {
            for folder in [self.at("container"), self.at("own"), self.folder.clone()] {
                std::fs::remove_dir(folder).ok();
            }
        }
    }

    #[test]
    fn a_device_program_of_version_2_gives_no_more_than_the_container_has() {
        let Some(unified) = Unified::new() else { return };
        let (own, container) = (unified.at("own"), unified.at("container"));
        // As if FUSE were a GPU's driver: this machine has no other device that could be one.
        let gpus = BTreeSet::from([10]);
        assert!(
            unified.opens("own", 10, 229),
            "this machine does not open it in any case"
        );
        bound_v2(&own, &container, &gpus).unwrap();
        assert!(unified.opens("own", 10, 229), "the container may, so may we");
        assert!(unified.opens("own", 1, 3) && unified.opens("own", 1, 9));
        assert!(!unified.opens("own", 1, 1), "the machine's memory");
        let count = |folder: &Path| bpf::attached(File::open(folder).unwrap().as_fd(), false).unwrap().len();
        bound_v2(&own, &container, &gpus).unwrap();
        assert_eq!(count(&own), 1, "a second entry adds nothing");
        // A runtime's program, which knows of no GPU.
        let theirs = bpf::load(&program(&BTreeSet::new())).unwrap();
        bpf::attach(File::open(&container).unwrap().as_fd(), theirs.as_fd()).unwrap();
        assert!(!unified.opens("container", 10, 229));
        bound_v2(&own, &container, &gpus).unwrap();
        assert_eq!(count(&own), 2);
        assert!(!unified.opens("own", 10, 229), "more than the container has");
        assert!(unified.opens("own", 1, 3));
        bound_v2(&own, &container, &gpus).unwrap();
        assert_eq!(count(&own), 2);
    }
}
