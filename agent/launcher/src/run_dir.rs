//! The folder through which a launcher, its supervisor and the node's agent communicate.
//!
//! One folder per container: containers that share one would take each other's sessions. Every file
//! in it is written under a temporary name and renamed, so that a reader sees all of it or nothing.
//!
//! The folder is open to every user of its container, and its files may be used by root there:
//! every name is looked up in the folder that is held open, and no link is followed.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, fchmod, fstat, linkat, mkdirat, openat, renameat, statat, unlinkat,
};
use rustix::process::geteuid;

use crate::raw_capture;

/// Where the run folder is mounted unless told otherwise.
pub const DEFAULT_RUN_DIR: &str = "/flopwatch/run";
/// Where the tools are mounted unless told otherwise.
pub const DEFAULT_TOOLS_DIR: &str = "/flopwatch/tools";

/// Name of the command line tool's folder below the tools folder; it must keep it.
pub const TARGET_FOLDER: &str = "target-linux-x64";

/// How the parts speak to each other through this folder; it grows when an agent of before would
/// misunderstand a launcher of after. The launcher writes it into [`WAITING`] and [`STATE`]; none
/// there means 1.
///
/// 1: waiting, claimed, env, failed, state, collecting. 2: beside them [`ENV_HELD`] with `release`,
/// and [`ENDED`].
pub const PROTOCOL: u32 = 2;

/// The launcher waits: its PID in the container, its start in Unix milliseconds, its protocol.
pub const WAITING: &str = "waiting";
/// A supervisor has taken the launcher on and is starting a session.
pub const CLAIMED: &str = "claimed";
/// The environment that the session gave to its stub, NUL-separated.
pub const ENV: &str = "env";
/// The same environment while the agent starts a collection first; it becomes [`ENV`] by its name
/// when that runs.
pub const ENV_HELD: &str = "env.held";
/// The program of a container that is held ([`crate::hold`]) has ended; a capture of it is still to
/// be taken.
pub const ENDED: &str = "ended";
/// The agent is ready: a profiler that starts the program itself ([`crate::profile`]) may do so.
pub const BEGIN: &str = "begin";
/// There will be no session; the content says why.
pub const FAILED: &str = "failed";
/// What the launcher did in the end ([`crate::state::State`]).
pub const STATE: &str = "state";
/// When this container was last grafted ([`crate::marker::Marker`]); outlives restarts.
pub const MARKER: &str = "marker";
/// A collection is in progress ([`crate::guard::Collecting`]).
pub const COLLECTING: &str = "collecting";
/// What the guard did last ([`crate::guard::Verdict`]).
pub const GUARD: &str = "guard";
/// The supervisor is asked to end its session, which hangs; or the launcher to end the program that
/// a profiler started.
pub const SHUTDOWN: &str = "shutdown";
/// Output of the session's supervisor and of what it runs.
pub const LOG: &str = "keeper.log";
/// Temporary folder of the session (TMPDIR and HOME of the profiler).
pub const TMP: &str = "tmp";
/// Where raw captures are written.
pub const OUT: &str = "out";
/// In [`OUT`] from before a profiler starts the program ([`crate::profile`]) until the agent has
/// taken what it wrote.
pub const UNTAKEN: &str = "untaken";

/// Largest control file that is read: 64 KiB.
pub const CONTROL_LIMIT: u64 = 64 << 10;
/// Largest environment file that is read: 1 MiB.
pub const ENV_LIMIT: u64 = 1 << 20;

/// A run folder.
#[derive(Debug, Clone)]
pub struct RunDir {
    path: PathBuf,
}

/// Opens nothing but what is there itself, and waits for nobody: not for the other end of a pipe
/// either.
const PLAIN: OFlags = OFlags::NOFOLLOW
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

impl RunDir {
    /// Names the folder; touches nothing.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Path of one of its files.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    fn open(&self) -> io::Result<OwnedFd> {
        open_folder(&self.path)
    }

    /// Whether the file is there.
    pub fn has(&self, name: &str) -> bool {
        self.open()
            .is_ok_and(|folder| statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok())
    }

    /// Reads a file of at most `limit` bytes. A larger one is an error of kind `FileTooLarge`, what
    /// is no file `InvalidInput`.
    pub fn read(&self, name: &str, limit: u64) -> io::Result<Vec<u8>> {
        let file = File::from(openat(self.open()?, name, PLAIN | OFlags::RDONLY, Mode::empty())?);
        if !file.metadata()?.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut bytes = Vec::new();
        file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
        if u64::try_from(bytes.len()).is_ok_and(|length| length <= limit) {
            Ok(bytes)
        } else {
            Err(io::ErrorKind::FileTooLarge.into())
        }
    }

    /// Reads a control file as text.
    pub fn read_text(&self, name: &str) -> io::Result<String> {
        String::from_utf8(self.read(name, CONTROL_LIMIT)?)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    /// Writes a file, readable by its owner only, all of it or nothing.
    pub fn write(&self, name: &str, content: &[u8]) -> io::Result<()> {
        write_in(&self.open()?, OsStr::new(name), content)
    }

    /// Removes a file; one that is not there is fine.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        remove_in(&self.open()?, OsStr::new(name))
    }

    /// Gives a file a second name: a full volume has no room for more.
    pub fn link(&self, name: &str, second: &str) -> io::Result<()> {
        let folder = self.open()?;
        Ok(linkat(&folder, name, &folder, second, AtFlags::empty())?)
    }

    /// Opens the log to write at its end; one that has more than `limit` bytes begins anew. What is
    /// no file of this user's own is replaced.
    pub fn open_log(&self, limit: u64) -> io::Result<File> {
        let folder = self.open()?;
        let append = PLAIN | OFlags::WRONLY | OFlags::APPEND;
        match openat(&folder, LOG, append, Mode::empty()).map(File::from) {
            Ok(log) if is_own_file(&log)? => {
                if log.metadata()?.len() > limit {
                    log.set_len(0)?;
                }
                return Ok(log);
            }
            Err(rustix::io::Errno::NOENT) => {}
            _ => remove_in(&folder, OsStr::new(LOG))?,
        }
        let made = openat(
            &folder,
            LOG,
            append | OFlags::CREATE | OFlags::EXCL,
            Mode::RUSR | Mode::WUSR,
        )?;
        Ok(File::from(made))
    }

    /// Whether a raw capture of a collection is there. Of the path that a control file names the
    /// file's name counts: captures are in [`OUT`] and nowhere else.
    pub fn has_capture(&self, output: &Path) -> bool {
        self.captures(output).is_ok_and(|(_, names)| !names.is_empty())
    }

    /// Removes the raw captures of a collection, one for each range that it recorded; see
    /// [`RunDir::has_capture`].
    pub fn remove_capture(&self, output: &Path) -> io::Result<()> {
        let Ok((folder, names)) = self.captures(output) else {
            return Ok(());
        };
        names.iter().try_for_each(|name| remove_in(&folder, name))
    }

    fn captures(&self, output: &Path) -> io::Result<(OwnedFd, Vec<OsString>)> {
        let folder = self.sub_folder(OUT)?;
        let output = output.file_name().unwrap_or_default();
        let mut names = Vec::new();
        for entry in Dir::read_from(&folder)?.take(LISTED) {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if raw_capture::is_of(name, output) {
                names.push(name.to_owned());
            }
        }
        Ok((folder, names))
    }

    fn sub_folder(&self, name: &str) -> io::Result<OwnedFd> {
        Ok(openat(
            self.open()?,
            name,
            PLAIN | OFlags::RDONLY | OFlags::DIRECTORY,
            Mode::empty(),
        )?)
    }

    /// Gives the launcher the environment that was held back. Safe to run twice.
    pub fn release(&self) -> io::Result<()> {
        let folder = self.open()?;
        match renameat(&folder, ENV_HELD, &folder, ENV) {
            Err(rustix::io::Errno::NOENT) if self.has(ENV) => Ok(()),
            other => Ok(other?),
        }
    }

    /// Lets a profiler start the program. Safe to run twice.
    pub fn begin(&self) -> io::Result<()> {
        self.write(BEGIN, b"")
    }

    /// Asks the supervisor to end its session. Safe to run twice.
    pub fn shut_down(&self) -> io::Result<()> {
        // A full volume has no room for a file, but for another name of one that is there.
        if self.has(SHUTDOWN) || self.link(ENV, SHUTDOWN).is_ok() {
            return Ok(());
        }
        self.write(SHUTDOWN, b"")
    }

    /// Lets nobody but its owner, and the folder's, rename or remove a file in the folder, as in
    /// `/tmp`: a program that gave up root cannot put its own files in the place of root's. Where
    /// the folder is another user's, nothing is done.
    pub fn protect(&self) -> io::Result<()> {
        let folder = self.open()?;
        let stat = fstat(&folder)?;
        if stat.st_uid == geteuid().as_raw() {
            fchmod(&folder, Mode::from_raw_mode(stat.st_mode) | Mode::SVTX)?;
        }
        Ok(())
    }

    /// Makes the session's temporary folder, open to every user of the container like `/tmp` is:
    /// processes of the workload that changed their user keep their streams in it.
    pub fn make_tmp(&self) -> io::Result<()> {
        self.make_folder(TMP, Mode::RWXU | Mode::RWXG | Mode::RWXO | Mode::SVTX)
    }

    /// Makes the folder for raw captures. Anyone may write it: the agent, root without the right to
    /// override modes, removes from it what it has taken out.
    pub fn make_out(&self) -> io::Result<()> {
        self.make_folder(OUT, Mode::RWXU | Mode::RWXG | Mode::RWXO)
    }

    /// Makes a folder of that mode, or takes the one of this user that is there.
    fn make_folder(&self, name: &str, mode: Mode) -> io::Result<()> {
        match mkdirat(self.open()?, name, Mode::RWXU) {
            Err(error) if error != rustix::io::Errno::EXIST => return Err(error.into()),
            _ => {}
        }
        let folder = self.sub_folder(name)?;
        if fstat(&folder)?.st_uid == geteuid().as_raw() {
            Ok(fchmod(&folder, mode)?)
        } else {
            Err(io::ErrorKind::PermissionDenied.into())
        }
    }

    /// Removes the raw captures that a profiler had begun to write when it ended; it names them
    /// itself.
    pub fn remove_unfinished(&self) -> io::Result<()> {
        let folder = self.sub_folder(TMP)?;
        for entry in Dir::read_from(&folder)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if Path::new(name)
                .extension()
                .is_some_and(|extension| extension == "qdstrm")
            {
                remove_in(&folder, name)?;
            }
        }
        Ok(())
    }

    /// Removes what an earlier life of this container left, but for the marker. Fails when the
    /// folder is not ours to write.
    pub fn clear(&self) -> io::Result<()> {
        for name in [
            WAITING, CLAIMED, ENV, ENV_HELD, BEGIN, ENDED, FAILED, STATE, COLLECTING, GUARD, SHUTDOWN, LOG,
        ] {
            self.remove(name)?;
        }
        for name in [TMP, OUT] {
            // It follows no link, in whatever place.
            match fs::remove_dir_all(self.file(name)) {
                Err(error) if error.kind() == io::ErrorKind::NotADirectory => self.remove(name)?,
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Bytes of regular files in the folder, at most 8 levels deep.
    pub fn bytes(&self) -> u64 {
        self.open().map_or(0, |folder| bytes_in(&folder, 0))
    }
}

/// Names in [`OUT`] that are looked at: whoever is in the container may write there.
const LISTED: usize = 4096;
/// How deep [`RunDir::bytes`] looks.
const DEPTH: u32 = 8;

fn bytes_in(folder: &OwnedFd, depth: u32) -> u64 {
    let Ok(entries) = Dir::read_from(folder) else { return 0 };
    let mut bytes: u64 = 0;
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name();
        let Ok(stat) = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) else {
            continue;
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => bytes = bytes.saturating_add(u64::try_from(stat.st_size).unwrap_or(0)),
            FileType::Directory if depth < DEPTH && !matches!(name.to_bytes(), b"." | b"..") => {
                let below = openat(folder, name, PLAIN | OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty());
                bytes = bytes.saturating_add(below.map_or(0, |below| bytes_in(&below, depth + 1)));
            }
            _ => {}
        }
    }
    bytes
}

/// A file that nobody else made, and that has no other name.
fn is_own_file(file: &File) -> io::Result<bool> {
    let metadata = file.metadata()?;
    Ok(metadata.is_file() && metadata.nlink() == 1 && metadata.uid() == geteuid().as_raw())
}

/// The path to the folder itself is the caller's own.
fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    let path = if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat(CWD, path, flags, Mode::empty())?)
}

fn remove_in(folder: &OwnedFd, name: &OsStr) -> io::Result<()> {
    match unlinkat(folder, name, AtFlags::empty()) {
        Err(error) if error != rustix::io::Errno::NOENT => Err(error.into()),
        _ => Ok(()),
    }
}

/// Writes `path`, mode 0600, under a temporary name beside it, then renames. No link is followed
/// but on the way to its folder.
pub fn write_atomically(path: &Path, content: &[u8]) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    write_in(&open_folder(path.parent().unwrap_or(Path::new(".")))?, name, content)
}

fn write_in(folder: &OwnedFd, name: &OsStr, content: &[u8]) -> io::Result<()> {
    let mut temporary = name.to_owned();
    temporary.push(format!(".{}.tmp", std::process::id()));
    let begin = || {
        openat(
            folder,
            &temporary,
            PLAIN | OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL,
            Mode::RUSR | Mode::WUSR,
        )
    };
    let made = match begin() {
        // Of a process before this one that had the same PID, or put there.
        Err(rustix::io::Errno::EXIST) => {
            remove_in(folder, &temporary)?;
            begin()
        }
        other => other,
    };
    let written = File::from(made?)
        .write_all(content)
        .and_then(|()| Ok(renameat(folder, &temporary, folder, name)?));
    if written.is_err() {
        drop(remove_in(folder, &temporary));
    }
    written
}

/// Now, in Unix milliseconds; 0 before 1970.
pub fn unix_ms() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .ok()
        .and_then(|age| u64::try_from(age.as_millis()).ok())
        .unwrap_or(0)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// An empty run folder.
    pub(crate) fn run_folder() -> (tempfile::TempDir, RunDir) {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDir::new(folder.path());
        (folder, run)
    }

    #[test]
    fn a_file_over_the_limit_is_refused_and_one_at_the_limit_read() {
        let (_folder, run) = run_folder();
        run.write("x", &[7; 10]).unwrap();
        assert_eq!(run.read("x", 10).unwrap(), [7; 10]);
        assert_eq!(run.read("x", 9).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }

    #[test]
    fn a_held_environment_is_released_once() {
        let (_folder, run) = run_folder();
        assert!(run.release().is_err(), "nothing is held");
        run.write(ENV_HELD, b"A=1").unwrap();
        run.release().unwrap();
        run.release().unwrap();
        assert_eq!(run.read(ENV, 10).unwrap(), b"A=1");
        assert!(!run.has(ENV_HELD));
    }

    #[test]
    fn a_session_is_asked_to_end_as_often_as_one_likes_and_its_next_life_is_not() {
        let (_folder, run) = run_folder();
        for environment in [false, true] {
            if environment {
                run.write(ENV, b"A=1").unwrap();
            }
            run.shut_down().unwrap();
            run.shut_down().unwrap();
            assert!(run.has(SHUTDOWN));
            run.clear().unwrap();
            assert!(!run.has(SHUTDOWN));
        }
    }

    #[test]
    fn a_capture_that_was_not_finished_is_removed_and_nothing_else() {
        let (_folder, run) = run_folder();
        run.make_tmp().unwrap();
        let left = |name: &str| run.file(TMP).join(name);
        for name in ["nsys-report-68bc.qdstrm", "nsys_termination_status_25"] {
            fs::write(left(name), "").unwrap();
        }
        run.remove_unfinished().unwrap();
        run.remove_unfinished().unwrap();
        assert!(!left("nsys-report-68bc.qdstrm").exists());
        assert!(left("nsys_termination_status_25").exists());
    }

    #[test]
    fn clearing_keeps_the_marker_and_can_be_repeated() {
        let (_folder, run) = run_folder();
        run.write(MARKER, b"m").unwrap();
        run.write(ENV, b"e").unwrap();
        run.make_tmp().unwrap();
        fs::write(run.file(TMP).join("left"), b"l").unwrap();
        run.clear().unwrap();
        run.clear().unwrap();
        assert!(run.has(MARKER));
        assert!(!run.has(ENV) && !run.has(TMP));
    }

    /// A file outside the folder, and how a user of the container would have root spoil it: a link
    /// under every name.
    fn planted(names: &[&str], target: &Path) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in names {
            std::os::unix::fs::symlink(target, folder.path().join(name)).unwrap();
        }
        folder
    }

    #[test]
    fn a_link_in_a_control_files_place_is_replaced_and_not_followed() {
        let outside = tempfile::tempdir().unwrap();
        let victim = outside.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        let temporary = format!("{COLLECTING}.{}.tmp", std::process::id());
        let folder = planted(&[&temporary, COLLECTING, GUARD, LOG, STATE], &victim);
        let run = RunDir::new(folder.path());
        run.write(COLLECTING, b"bounds").unwrap();
        assert_eq!(run.read_text(COLLECTING).unwrap(), "bounds");
        run.link(COLLECTING, "second").unwrap();
        run.open_log(0).unwrap().write_all(b"said").unwrap();
        assert_eq!(run.read_text(LOG).unwrap(), "said");
        assert!(run.read(STATE, 10).is_err(), "a link is no control file");
        run.clear().unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    }

    #[test]
    fn a_log_with_a_second_name_is_left_to_whom_it_belongs() {
        let (_folder, run) = run_folder();
        let victim = run.file("victim");
        fs::write(&victim, "precious").unwrap();
        fs::hard_link(&victim, run.file(LOG)).unwrap();
        run.open_log(0).unwrap().write_all(b"said").unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        assert_eq!(run.read_text(LOG).unwrap(), "said");
        run.open_log(3).unwrap().write_all(b"new").unwrap();
        assert_eq!(run.read_text(LOG).unwrap(), "new", "a long log begins anew");
    }

    #[test]
    fn folders_that_are_links_are_neither_opened_nor_emptied() {
        let outside = tempfile::tempdir().unwrap();
        let victim = outside.path().join("precious.qdstrm");
        fs::write(&victim, "precious").unwrap();
        let mode = || fs::metadata(outside.path()).unwrap().mode();
        let before = mode();
        let folder = planted(&[TMP, OUT], outside.path());
        let run = RunDir::new(folder.path());
        assert!(run.make_tmp().is_err() && run.make_out().is_err());
        assert!(run.remove_unfinished().is_err());
        let output = Path::new("/flopwatch/run/out/precious.qdstrm");
        assert!(!run.has_capture(output));
        run.remove_capture(output).unwrap();
        assert_eq!(run.bytes(), 0);
        run.clear().unwrap();
        assert_eq!((mode(), victim.exists()), (before, true));
    }

    #[test]
    fn of_a_captures_path_only_the_name_is_taken() {
        let outside = tempfile::tempdir().unwrap();
        let victim = outside.path().join("precious.qdstrm");
        fs::write(&victim, "precious").unwrap();
        let (_folder, run) = run_folder();
        run.make_out().unwrap();
        let own = run.file(OUT).join("precious.qdstrm");
        fs::write(&own, "own").unwrap();
        let second = run.file(OUT).join("precious.2.qdstrm");
        fs::write(&second, "of the second range").unwrap();
        assert!(run.has_capture(&victim));
        run.remove_capture(&victim).unwrap();
        assert!(victim.exists() && !own.exists() && !second.exists() && !run.has_capture(&victim));
    }

    #[test]
    fn a_pipe_makes_nobody_wait_and_the_folder_is_sticky() {
        let (folder, run) = run_folder();
        nix::unistd::mkfifo(&run.file(STATE), nix::sys::stat::Mode::S_IRWXU).unwrap();
        nix::unistd::mkfifo(&run.file(LOG), nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(run.read(STATE, 10).is_err());
        run.open_log(0).unwrap();
        let mode = || fs::metadata(folder.path()).unwrap().mode();
        let before = mode();
        run.protect().unwrap();
        assert_eq!(mode(), before | 0o1000);
    }
}
