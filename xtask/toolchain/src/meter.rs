//! What the steps of a recipe took: wall clock, processor time of the programs that they ran,
//! memory, disk.
//!
//! [`Run`](crate::command::Run) adds the processor time of each program, with all that the program
//! waited for, to the thread that ran it; a step is what its thread counted between its begin and
//! its end. Memory is the machine's: a step's figure is the most that was taken on the whole
//! machine while it ran, as steps that run side by side cannot be told apart. So is the disk's.

use crate::command::pause;
use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Time between two looks at the machine's memory.
const MEMORY_INTERVAL: Duration = Duration::from_millis(500);
/// Clock ticks of `/proc/PID/stat` per second: `USER_HZ`, which is 100 on every architecture that
/// Rust runs on under Linux.
const TICKS_PER_SECOND: u64 = 100;

thread_local! {
    static PROCESSOR: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

static STEPS: Mutex<Vec<StepFigures>> = Mutex::new(Vec::new());
static MACHINE: Mutex<Option<Machine>> = Mutex::new(None);

/// The figures of one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepFigures {
    /// The step's name.
    pub name: String,
    /// How long the step took.
    pub wall: Duration,
    /// Processor time of the programs that the step's thread ran, user and system.
    pub processor: Duration,
    /// The most memory that was taken on the machine while the step ran, in bytes; 0 where nobody
    /// looked.
    pub memory: u64,
    /// Bytes by which the free room of the disk shrank while the step ran; negative where it grew.
    pub disk: i64,
}

/// What is looked at beside the steps.
#[derive(Debug)]
struct Machine {
    /// A folder on the disk whose room counts.
    folder: PathBuf,
    /// Memory that was taken, in bytes, with the time of the look.
    memory: Vec<(Instant, u64)>,
}

/// A step that runs.
#[derive(Debug)]
pub(crate) struct Measured {
    began: Instant,
    processor: Duration,
    free: Option<u64>,
}

/// Begins to look at the machine's memory, and at the disk of `folder`, until the program ends.
pub fn watch_machine(folder: &Path) {
    let machine = Machine {
        folder: folder.to_owned(),
        memory: Vec::new(),
    };
    if lock(&MACHINE).replace(machine).is_some() {
        return;
    }
    std::thread::spawn(|| {
        loop {
            if let Some(taken) = memory_taken()
                && let Some(machine) = lock(&MACHINE).as_mut()
            {
                machine.memory.push((Instant::now(), taken));
            }
            pause(MEMORY_INTERVAL);
        }
    });
}

/// The outermost steps of all threads that have ended, in the order of their ends.
pub fn steps() -> Vec<StepFigures> {
    lock(&STEPS).clone()
}

/// Free bytes of the disk that a folder, or the nearest of its parents that is there, lies on.
pub fn free_bytes(folder: &Path) -> Option<u64> {
    let there = folder.ancestors().find(|folder| folder.exists())?;
    let facts = nix::sys::statvfs::statvfs(there).ok()?;
    Some(facts.blocks_available().saturating_mul(facts.fragment_size()))
}

impl Measured {
    /// Begins a step on this thread.
    pub(crate) fn begin() -> Self {
        DEPTH.set(DEPTH.get() + 1);
        Self {
            began: Instant::now(),
            processor: PROCESSOR.get(),
            free: free(),
        }
    }

    /// Ends the step; the outermost one of a thread is written down. Gives how long it took.
    pub(crate) fn end(self, name: &str) -> Duration {
        let wall = self.began.elapsed();
        let depth = DEPTH.get().saturating_sub(1);
        DEPTH.set(depth);
        if depth == 0 {
            let disk = match (self.free, free()) {
                (Some(before), Some(after)) => {
                    i64::try_from(before).unwrap_or(i64::MAX) - i64::try_from(after).unwrap_or(i64::MAX)
                }
                _ => 0,
            };
            lock(&STEPS).push(StepFigures {
                name: name.to_owned(),
                wall,
                processor: PROCESSOR.get().saturating_sub(self.processor),
                memory: most_memory_since(self.began),
                disk,
            });
        }
        wall
    }
}

/// Adds processor time to what this thread has counted.
pub fn add_processor(time: Duration) {
    PROCESSOR.set(PROCESSOR.get() + time);
}

/// Gives what this thread has counted so far, and begins anew.
pub fn take_processor() -> Duration {
    PROCESSOR.take()
}

/// Processor time of a program that has ended and that nobody has waited for yet, with all that it
/// waited for.
pub(crate) fn processor_of(pid: u32) -> Option<Duration> {
    let pid = nix::unistd::Pid::from_raw(i32::try_from(pid).ok()?);
    let flags = nix::sys::wait::WaitPidFlag::WEXITED | nix::sys::wait::WaitPidFlag::WNOWAIT;
    nix::sys::wait::waitid(nix::sys::wait::Id::Pid(pid), flags).ok()?;
    parse_processor(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// `utime`, `stime`, `cutime` and `cstime` of a line of `/proc/PID/stat`, added up.
fn parse_processor(stat: &str) -> Option<Duration> {
    // The program's name, in brackets, may hold spaces and brackets itself.
    let fields = stat.rsplit_once(") ")?.1.split(' ').skip(11).take(4);
    let ticks = fields
        .map(|field| field.parse::<u64>().ok())
        .collect::<Option<Vec<u64>>>()?;
    let sum: u64 = (ticks.len() == 4).then(|| ticks.iter().sum())?;
    Some(Duration::from_millis(sum * 1000 / TICKS_PER_SECOND))
}

fn most_memory_since(began: Instant) -> u64 {
    let machine = lock(&MACHINE);
    let looks = machine.iter().flat_map(|machine| machine.memory.iter().rev());
    let during = looks.take_while(|(at, _)| *at >= began).map(|(_, taken)| *taken);
    during.max().unwrap_or(0)
}

fn free() -> Option<u64> {
    lock(&MACHINE).as_ref().and_then(|machine| free_bytes(&machine.folder))
}

fn memory_taken() -> Option<u64> {
    parse_memory(&fs::read_to_string("/proc/meminfo").ok()?)
}

/// Bytes that are not available, of `/proc/meminfo`.
fn parse_memory(meminfo: &str) -> Option<u64> {
    let kib = |name: &str| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()
    };
    Some(kib("MemTotal:")?.saturating_sub(kib("MemAvailable:")?) << 10)
}

/// A panic of another thread leaves figures that are whole.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_programs_name_in_its_own_brackets_does_not_shift_the_fields() {
        let line = "7 (a) b (c) Z 1 2 3 4 5 6 7 8 9 10 100 20 3 7 0 0";
        assert_eq!(parse_processor(line), Some(Duration::from_millis(1300)));
        assert_eq!(parse_processor("7 (a) Z 1 2"), None);
    }

    #[test]
    fn memory_is_what_is_not_available() {
        let text = "MemTotal:       1000 kB\nMemFree:  1 kB\nMemAvailable:    400 kB\n";
        assert_eq!(parse_memory(text), Some(600 << 10));
        assert_eq!(parse_memory("MemTotal: 1000 kB\n"), None);
    }

    #[test]
    fn the_room_of_a_folder_that_is_not_there_yet_is_its_parents() {
        let there = tempfile::tempdir().unwrap();
        assert!(free_bytes(&there.path().join("not/there")).is_some());
    }
}

#[cfg(test)]
mod crate_tests {
    use super::*;
    use crate::command::Run;

    #[test]
    fn a_step_counts_the_processor_time_of_its_programs_and_of_their_children() {
        let before = PROCESSOR.get();
        let spin = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        Run::new("sh")
            .args(["-c", &format!("sh -c '{spin}'; true")])
            .quiet()
            .unwrap();
        assert!(PROCESSOR.get() > before, "a child's child counts");
    }
}
