//! The parent of everything of ours in a container.
//!
//! A profiler's daemons fork twice; without a subreaper the workload, PID 1, would inherit and have
//! to reap them. The supervisor stays until the last of its descendants is gone, and ends them all
//! before it ends itself.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::sys::wait::WaitStatus;
use nix::unistd::{Pid, getppid};

use crate::guard::{Collecting, Guard};
use crate::list::{self, Profiler};
use crate::marker::{Marker, SHORT_LIFE};
use crate::run_dir::{self, RunDir};
use crate::signals::{self, SignalWatch};
use crate::slot::{self, Slot};
use crate::spawn::{self, Streams};
use crate::{manager_lock, state, tree};

/// How often a supervisor looks around when no signal wakes it.
const WAKE_INTERVAL: Duration = Duration::from_millis(100);
/// How long a stop of the guard may take before the whole session is ended.
const GUARD_COMMAND_TIMEOUT: Duration = Duration::from_mins(1);
/// Pause before a failed stop is tried again, and how often that is done.
const RETRY_INTERVAL: Duration = Duration::from_secs(3);
const MAX_ATTEMPTS: u32 = 4;
/// How often a session's launch is begun. On a busy machine it can trip over itself: a process of
/// it then looks for what another has not made yet and it ends with an error, or it loses its own
/// session and ends with 0.
const MAX_LAUNCHES: u32 = 5;
/// Pause after the first launch that failed; each later one is as much longer. All of them fit into
/// the launcher's own bound.
const LAUNCH_PAUSE: Duration = Duration::from_millis(100);
/// How long the first launch may take to give an environment before it is begun again: one of its
/// processes may have been killed, and the others wait for it. It takes two seconds on a machine
/// with ten times the work it can do.
const FIRST_LAUNCH_TIMEOUT: Duration = Duration::from_secs(8);
/// Argument by which Nsight Systems starts the process that a session lives in.
const SESSION_AGENT: &str = "--start-agent";
/// How long what a control command leaves behind may live on.
const MAX_LINGER_DURATION: Duration = Duration::from_secs(2);
/// How long the profiler may take to end by itself once the program that its session was started
/// around has ended.
const ORDERLY_EXIT_TIMEOUT: Duration = Duration::from_secs(1);
/// Longest wait for a change of the profiler's list that is under way before a process of it is
/// killed.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(1);
/// Log bytes after which the log starts anew.
const LOG_LIMIT: u64 = 1 << 20;
/// How long a supervisor waits for the pod's place: a session that needs none gives it back as soon
/// as it has started.
const SLOT_TIMEOUT: Duration = Duration::from_secs(3);
/// Exit code when the deadline passed, as `timeout` has it.
const TIMED_OUT: i32 = 124;
/// Why a container gets no session where another of its pod has one.
const TAKEN: &str = "another container of this pod has a session of Nsight Systems, and this version keeps only one in the shared \
                     memory of a pod; prepare one container, or profile this one with another profiler";

/// What a supervisor is to do beside waiting.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Ends the command's tree after this long; what the command leaves behind is ended soon after
    /// it.
    pub deadline: Option<Duration>,
    /// The session to hold; none for a short command.
    pub session: Option<Session>,
    /// Bounds of the collection that the command starts: written before it runs, removed when it
    /// fails.
    pub begin_collecting: Option<(PathBuf, String)>,
    /// The command ends a collection: the bounds in this run folder are removed when it succeeded.
    pub end_collecting: Option<PathBuf>,
}

/// A profiler's session that a supervisor holds and guards.
#[derive(Debug, Clone)]
pub struct Session {
    /// The run folder.
    pub run_dir: PathBuf,
    /// The profiler's command line tool.
    pub nsys: PathBuf,
    /// Sessions beside this one are in its PID namespace too, and so have other names in shared
    /// memory: it needs no place.
    pub beside_others: bool,
}

/// Runs `command` in `environment` and keeps it; returns its exit code as a shell has it, 124 when
/// the deadline passed.
pub fn keep(options: &Options, command: &[CString], environment: &[CString]) -> i32 {
    match prepare(options, environment).and_then(|supervisor| supervisor.hold(options, command)) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("flopwatch-launcher: supervisor: {error}");
            126
        }
    }
}

struct Supervisor<'a> {
    watch: SignalWatch,
    environment: &'a [CString],
    /// The profiler's temporary folder.
    tmp: PathBuf,
    /// The reaper. Once it is gone this process is a child of the workload.
    parent: Pid,
    held: Option<SessionWatch>,
}

/// What a supervisor knows of the session that it holds.
struct SessionWatch {
    run_dir: RunDir,
    nsys: PathBuf,
    guard: Guard,
    /// The pod's place for a session, where there is one to take.
    slot: Option<Slot>,
    place_judged: bool,
    /// The guard's own stop while it runs.
    ending: Option<Ending>,
    /// Stops of the guard that failed in a row, and when the next may be tried: the agent's own may
    /// be on its way.
    failed: u32,
    next: Option<Instant>,
    /// When the workload was seen to run grafted; none before, and none again once it is marked as
    /// survived.
    grafted: Option<Instant>,
    decided: bool,
}

/// A stop on its way.
struct Ending {
    pid: Pid,
    deadline: Instant,
    /// The raw capture that it writes; its name counts.
    output: PathBuf,
    /// Whether that is removed once it is written.
    discard: bool,
}

fn prepare<'a>(options: &Options, environment: &'a [CString]) -> std::io::Result<Supervisor<'a>> {
    nix::sys::prctl::set_child_subreaper(true)?;
    let mut watched = signals::ENDING.to_vec();
    watched.push(Signal::SIGCHLD);
    let watch = SignalWatch::new(&watched)?;
    let held = match &options.session {
        None => None,
        Some(session) => {
            let run_dir = RunDir::new(&session.run_dir);
            run_dir.make_tmp()?;
            run_dir.make_out()?;
            run_dir.write(run_dir::CLAIMED, std::process::id().to_string().as_bytes())?;
            let guard = Guard::new(run_dir.clone());
            let slot = if session.beside_others {
                None
            } else {
                take_place(&run_dir)?
            };
            Some(SessionWatch {
                run_dir,
                nsys: session.nsys.clone(),
                guard,
                place_judged: slot.is_none(),
                slot,
                ending: None,
                failed: 0,
                next: None,
                grafted: None,
                decided: false,
            })
        }
    };
    if let Some((folder, bounds)) = &options.begin_collecting {
        let folder = RunDir::new(folder);
        folder.remove(run_dir::GUARD)?;
        folder.write(run_dir::COLLECTING, bounds.as_bytes())?;
    }
    let supervisor = Supervisor {
        watch,
        environment,
        tmp: temporary_folder(options, environment),
        parent: getppid(),
        held,
    };
    if let Err(why) = supervisor.look_after_list() {
        drop(
            supervisor
                .held
                .as_ref()
                .map(|held| held.run_dir.write(run_dir::FAILED, why.as_bytes())),
        );
        return Err(std::io::Error::other(why));
    }
    Ok(supervisor)
}

/// Where the profiler keeps its files: a session's folder, else what the environment says.
pub(crate) fn temporary_folder(options: &Options, environment: &[CString]) -> PathBuf {
    let named = || {
        let value = environment
            .iter()
            .find_map(|entry| entry.as_bytes().strip_prefix(b"TMPDIR="));
        value.map_or_else(
            || "/tmp".into(),
            |value| PathBuf::from(std::ffi::OsString::from_vec(value.to_vec())),
        )
    };
    let session = options.session.as_ref();
    session.map_or_else(named, |session| session.run_dir.join(run_dir::TMP))
}

/// Ends every process below this one. None of the profiler's is in the middle of a change of its
/// list then, as long as one does not take longer than [`CHANGE_TIMEOUT`]; one that waits in a
/// spoilt list for ever does not leave that list to the next.
pub(crate) fn end_below(tmp: &Path) {
    let change = manager_lock::hold(tmp, CHANGE_TIMEOUT);
    if change.is_none() {
        list::remove_spoilt(Path::new(slot::SHARED_MEMORY), tmp);
    }
    tree::end_all();
    drop(change);
}

/// The pod's place, or none where there is no shared memory to have it in. Fails when another
/// container has it.
fn take_place(run_dir: &RunDir) -> std::io::Result<Option<Slot>> {
    match slot::take(Path::new(slot::SHARED_MEMORY), SLOT_TIMEOUT) {
        Ok(Some(slot)) => Ok(Some(slot)),
        Ok(None) => {
            run_dir.write(run_dir::FAILED, TAKEN.as_bytes())?;
            Err(std::io::Error::other(TAKEN))
        }
        Err(_) => Ok(None),
    }
}

impl Supervisor<'_> {
    fn hold(mut self, options: &Options, command: &[CString]) -> std::io::Result<i32> {
        let start = Instant::now();
        let mut launches = 1;
        let mut child = self.launch(options, command)?;
        let mut code = None;
        let mut pause = None;
        let mut deadline = options.deadline.map(|limit| start + limit);
        loop {
            let signal = self
                .watch
                .wait(WAKE_INTERVAL)
                .filter(|signal| *signal != Signal::SIGCHLD);
            let (ended, alive) = tree::reap();
            for (pid, status) in ended {
                if pid == child {
                    code = Some(tree::exit_code(status));
                    pause = Some(Instant::now() + LAUNCH_PAUSE * launches);
                    if self.held.is_none() {
                        deadline = deadline.map(|deadline| deadline.min(Instant::now() + MAX_LINGER_DURATION));
                    }
                }
                self.reaped(pid, status);
            }
            if launches == 1 && code.is_none() && start.elapsed() >= FIRST_LAUNCH_TIMEOUT && self.is_awaited() {
                end_below(&self.tmp);
                (code, pause) = (Some(TIMED_OUT), Some(Instant::now()));
            }
            let again = launches < MAX_LAUNCHES && code.is_some() && self.is_awaited();
            if !alive && !again {
                break;
            }
            if let Some(signal) = signal {
                code = Some(128 + signals::number(signal));
                break;
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                code.get_or_insert(TIMED_OUT);
                break;
            }
            if again {
                // What is left of it may hold what the next one needs.
                end_below(&self.tmp);
                if pause.is_some_and(|until| Instant::now() >= until) {
                    if let Err(why) = self.look_after_list() {
                        self.finish(options, 1, &why);
                        return Err(std::io::Error::other(why));
                    }
                    launches += 1;
                    child = self.launch(options, command)?;
                    (code, pause) = (None, None);
                }
            }
            if !self.session_goes_on(code.is_some() && !again) {
                break;
            }
        }
        self.end_all();
        let code = code.unwrap_or(1);
        self.finish(
            options,
            code,
            &format!("the profiler's launch ended with exit code {code}"),
        );
        Ok(code)
    }

    /// Ends what is left of the command; a session is given the time to end by itself, which a
    /// control command had.
    fn end_all(&self) {
        if getppid() != self.parent {
            // The workload must not wait for us: what stays in shared memory the next start
            // removes.
            return tree::end_all();
        }
        let mut left = tree::reap().1;
        if left && self.held.is_some() {
            // A session lives as long as the program that it was started around, and removes its
            // own names then.
            tree::end_stubs();
            let until = Instant::now() + ORDERLY_EXIT_TIMEOUT;
            while left && Instant::now() < until {
                if self
                    .watch
                    .wait(WAKE_INTERVAL)
                    .is_some_and(|signal| signal != Signal::SIGCHLD)
                {
                    break;
                }
                left = tree::reap().1;
            }
        }
        if left {
            end_below(&self.tmp);
        }
        if let Some(held) = &self.held {
            list::sweep(Path::new(slot::SHARED_MEMORY), held.slot.is_some(), &self.tmp);
        }
    }

    /// Before a session starts, and after one was ended by force: nothing dead stands in its way.
    /// The error says what does.
    fn look_after_list(&self) -> Result<(), String> {
        let Some(held) = &self.held else { return Ok(()) };
        let profiler = Profiler {
            nsys: &held.nsys,
            tmp: &self.tmp,
            environment: self.environment,
            mask: self.watch.before(),
        };
        match list::look_after(Path::new(slot::SHARED_MEMORY), held.slot.is_some(), profiler) {
            Ok(removed) => {
                for list in removed {
                    self.log(&format!(
                        "removed the profiler's list of sessions {}, which no living process used",
                        Path::new(slot::SHARED_MEMORY).join(list).display()
                    ));
                }
                Ok(())
            }
            Err(stuck) => Err(stuck.to_string()),
        }
    }

    /// Writes a line into the session's log.
    fn log(&self, line: &str) {
        use std::io::Write;
        let log = self
            .held
            .as_ref()
            .and_then(|held| held.run_dir.open_log(LOG_LIMIT).ok());
        if let Some(mut log) = log {
            drop(writeln!(log, "flopwatch-launcher: {line}"));
        }
    }

    fn launch(&self, options: &Options, command: &[CString]) -> std::io::Result<Pid> {
        self.spawn(command)
            .inspect_err(|error| self.finish(options, 127, &format!("cannot run the profiler: {error}")))
    }

    fn spawn(&self, command: &[CString]) -> std::io::Result<Pid> {
        let output = self.held.as_ref().map(output).transpose()?;
        spawn::start(command, self.environment, self.watch.before(), &Streams::Helper(output))
    }

    fn reaped(&mut self, pid: Pid, status: WaitStatus) {
        let Some(held) = &mut self.held else { return };
        let Some(ending) = held.ending.take_if(|ending| ending.pid == pid) else {
            return;
        };
        // A stop that failed after an earlier one had written the capture, and was cut off with its
        // agent, found nothing left to stop.
        let ended = tree::exit_code(status) == 0 || held.run_dir.has_capture(&ending.output);
        if ending.discard {
            drop(held.run_dir.remove_capture(&ending.output));
        }
        if ended {
            held.failed = 0;
            drop(held.run_dir.remove(run_dir::COLLECTING));
        } else {
            held.failed += 1;
            held.next = Some(Instant::now() + RETRY_INTERVAL);
        }
    }

    /// Whether the launcher still waits for the session, which has given no environment.
    fn is_awaited(&self) -> bool {
        self.held.as_ref().is_some_and(|held| {
            [run_dir::ENV, run_dir::ENV_HELD, run_dir::STATE, run_dir::FAILED]
                .iter()
                .all(|name| !held.run_dir.has(name))
        })
    }

    /// Looks after the session; false when it must end.
    fn session_goes_on(&mut self, launch_ended: bool) -> bool {
        let Some(held) = &self.held else { return true };
        // It begins anew where it is too long.
        drop(held.run_dir.open_log(LOG_LIMIT));
        if held.run_dir.has(run_dir::SHUTDOWN) {
            self.log("the agent asked for the session's end");
            return false;
        }
        self.give_place_back();
        self.follow_launcher(launch_ended) && self.guard()
    }

    /// Once the session has started it is seen whether its place is needed: once, as shared memory
    /// may hold many files.
    fn give_place_back(&mut self) {
        let Some(held) = &mut self.held else { return };
        let started = || held.run_dir.has(run_dir::ENV) || held.run_dir.has(run_dir::ENV_HELD);
        if !held.place_judged && started() {
            held.place_judged = true;
            held.slot.take_if(|_| !slot::is_needed(Path::new(slot::SHARED_MEMORY)));
        }
    }

    /// Follows what the launcher does with the session: ends a session that nobody took, marks a
    /// life as survived.
    fn follow_launcher(&mut self, launch_ended: bool) -> bool {
        let Some(held) = &mut self.held else { return true };
        if !held.decided {
            let message = held
                .run_dir
                .read_text(run_dir::STATE)
                .ok()
                .and_then(|text| state::grafted(&text));
            match message {
                Some(false) => return false,
                Some(true) => {
                    held.decided = true;
                    held.grafted = Some(Instant::now());
                }
                None if launch_ended && !held.run_dir.has(run_dir::ENV) => return false,
                None => {}
            }
        }
        if held
            .grafted
            .is_some_and(|since| since.elapsed() >= Duration::from_millis(SHORT_LIFE))
        {
            held.grafted = None;
            let marker = held
                .run_dir
                .read_text(run_dir::MARKER)
                .ok()
                .and_then(|text| Marker::parse(&text));
            if let Some(marker) = marker {
                let survived = Marker {
                    survived: true,
                    ..marker
                };
                drop(held.run_dir.write(run_dir::MARKER, survived.render().as_bytes()));
            }
        }
        // A launch lasts as long as its stub, but may trip after that has begun: its session goes
        // on with the profiler's agent.
        !(launch_ended && held.decided) || tree::has(SESSION_AGENT)
    }

    /// Ends a collection that outran its bounds; false when even that does not come to an end.
    fn guard(&mut self) -> bool {
        let Some(held) = &mut self.held else { return true };
        if let Some(ending) = &held.ending {
            return Instant::now() < ending.deadline;
        }
        let Some((collecting, verdict)) = held.guard.inspect() else {
            (held.failed, held.next) = (0, None);
            return true;
        };
        if held.failed >= MAX_ATTEMPTS {
            // A collection that cannot be ended must not run on: the session goes, the workload
            // stays.
            return false;
        }
        if held.next.is_some_and(|next| Instant::now() < next) {
            return true;
        }
        if held.run_dir.write(run_dir::GUARD, verdict.as_str().as_bytes()).is_err() {
            // A full volume has no room for a word, but for another name of a file that is there.
            drop(held.run_dir.link(run_dir::COLLECTING, run_dir::GUARD));
        }
        let Some(collecting) = collecting else {
            drop(held.run_dir.remove(run_dir::COLLECTING));
            return false;
        };
        // Throwing away is a stop whose capture is removed: not every version has a working
        // `cancel`.
        let nsys = held.nsys.as_os_str().as_bytes();
        let words = [nsys, b"stop", b"--session", collecting.session.as_bytes()];
        let command: Vec<CString> = words.iter().filter_map(|word| CString::new(*word).ok()).collect();
        let spawned = self.spawn(&command);
        let Some(held) = &mut self.held else { return true };
        match spawned {
            Ok(pid) => {
                held.ending = Some(Ending {
                    pid,
                    deadline: Instant::now() + GUARD_COMMAND_TIMEOUT,
                    output: collecting.output,
                    discard: !verdict.keeps(),
                });
            }
            Err(_) => return false,
        }
        true
    }

    /// Leaves the run folder as the agent and the launcher expect it.
    fn finish(&self, options: &Options, code: i32, why: &str) {
        if let Some(held) = &self.held {
            if !held.run_dir.has(run_dir::ENV) {
                drop(held.run_dir.write(run_dir::FAILED, why.as_bytes()));
            }
            drop(held.run_dir.remove(run_dir::COLLECTING));
            drop(held.run_dir.remove_unfinished());
        }
        if let Some((folder, bounds)) = &options.begin_collecting {
            let folder = RunDir::new(folder);
            // Started: from now on the guard can stop it.
            let running = Collecting::parse(bounds).map(|bounds| {
                Collecting {
                    running: true,
                    ..bounds
                }
                .render()
            });
            match running {
                Some(running) if code == 0 => drop(folder.write(run_dir::COLLECTING, running.as_bytes())),
                _ => drop(folder.remove(run_dir::COLLECTING)),
            }
        }
        if let Some(folder) = &options.end_collecting {
            let folder = RunDir::new(folder);
            // Whoever asked for the stop may have died, and the tool over its broken pipe: what
            // counts is the capture.
            if code == 0 || has_output(&folder) {
                drop(folder.remove(run_dir::COLLECTING));
            }
        }
    }
}

/// A session's output goes to its log: nobody reads a pipe for as long as a session lives.
fn output(held: &SessionWatch) -> std::io::Result<File> {
    let log = held.run_dir.open_log(LOG_LIMIT);
    log.or_else(|_| OpenOptions::new().write(true).open("/dev/null"))
}

/// Whether the collection that is guarded has written its capture.
fn has_output(run_dir: &RunDir) -> bool {
    let text = run_dir.read_text(run_dir::COLLECTING).unwrap_or_default();
    Collecting::parse(&text).is_some_and(|collecting| run_dir.has_capture(&collecting.output))
}
