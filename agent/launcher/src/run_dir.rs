//! The folder by which a launcher, its keeper and the node's agent speak to each other.
//!
//! One folder per container: containers that share one would take each other's sessions. Every file in it is written
//! under a temporary name and renamed, so that a reader sees all of it or nothing.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Where the run folder is mounted unless told otherwise.
pub const DEFAULT_RUN_DIR: &str = "/flopwatch/run";
/// Where the tools are mounted unless told otherwise.
pub const DEFAULT_TOOLS_DIR: &str = "/flopwatch/tools";

/// Name of the command line tool's folder below the tools folder; it must keep it.
pub const TARGET_FOLDER: &str = "target-linux-x64";

/// How the parts speak to each other through this folder; it grows when an agent of before would misunderstand a launcher
/// of after. The launcher writes it into [`WAITING`] and [`STATE`]; none there means 1.
///
/// 1: waiting, claimed, env, failed, state, collecting. 2: beside them [`ENV_HELD`] with `release`, and [`ENDED`].
pub const PROTOCOL: u32 = 2;

/// The launcher waits: its PID in the container, its start in Unix milliseconds, its protocol.
pub const WAITING: &str = "waiting";
/// A keeper has taken the launcher on and is starting a session.
pub const CLAIMED: &str = "claimed";
/// The environment that the session gave to its stub, NUL-separated.
pub const ENV: &str = "env";
/// The same environment while the agent starts a collection first; it becomes [`ENV`] by its name when that runs.
pub const ENV_HELD: &str = "env.held";
/// The program of a container that is held ([`crate::hold`]) has ended; a capture of it is still to be taken.
pub const ENDED: &str = "ended";
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
/// Output of the session's keeper and of what it runs.
pub const LOG: &str = "keeper.log";
/// Temporary folder of the session (TMPDIR and HOME of the profiler).
pub const TMP: &str = "tmp";
/// Where raw captures are written.
pub const OUT: &str = "out";

/// Largest control file that is read: 64 KiB.
pub const CONTROL_LIMIT: u64 = 64 << 10;
/// Largest environment file that is read: 1 MiB.
pub const ENV_LIMIT: u64 = 1 << 20;

/// A run folder.
#[derive(Debug, Clone)]
pub struct RunDir {
    path: PathBuf,
}

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

    /// Whether the file is there.
    pub fn has(&self, name: &str) -> bool {
        fs::symlink_metadata(self.file(name)).is_ok()
    }

    /// Reads a file of at most `limit` bytes. A larger one is an error of kind `FileTooLarge`.
    pub fn read(&self, name: &str, limit: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        File::open(self.file(name))?
            .take(limit.saturating_add(1))
            .read_to_end(&mut bytes)?;
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
        write_atomically(&self.file(name), content)
    }

    /// Removes a file; one that is not there is fine.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        match fs::remove_file(self.file(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Gives the launcher the environment that was held back. Safe to run twice.
    pub fn release(&self) -> io::Result<()> {
        match fs::rename(self.file(ENV_HELD), self.file(ENV)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.has(ENV) => Ok(()),
            other => other,
        }
    }

    /// Makes the session's temporary folder, open to every user of the container like `/tmp` is: processes of the
    /// workload that changed their user keep their streams in it.
    pub fn make_tmp(&self) -> io::Result<()> {
        let path = self.file(TMP);
        match fs::create_dir(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o1777))
    }

    /// Makes the folder for raw captures. Anyone may write it: the agent, root without the right to override modes,
    /// removes from it what it has taken out.
    pub fn make_out(&self) -> io::Result<()> {
        let path = self.file(OUT);
        match fs::create_dir(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777))
    }

    /// Removes the raw captures that a profiler had begun to write when it ended; it names them itself.
    pub fn remove_unfinished(&self) -> io::Result<()> {
        for entry in fs::read_dir(self.file(TMP))? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "qdstrm") {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }

    /// Removes what an earlier life of this container left, but for the marker. Fails when the folder is not ours to
    /// write.
    pub fn clear(&self) -> io::Result<()> {
        for name in [
            WAITING, CLAIMED, ENV, ENV_HELD, ENDED, FAILED, STATE, COLLECTING, GUARD, LOG,
        ] {
            self.remove(name)?;
        }
        for name in [TMP, OUT] {
            match fs::remove_dir_all(self.file(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Writes `path`, mode 0600, under a temporary name beside it, then renames.
pub fn write_atomically(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}.tmp", std::process::id()));
    let temporary = PathBuf::from(temporary);
    let written = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&temporary)
        .and_then(|mut file| file.write_all(content))
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        drop(fs::remove_file(&temporary));
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
mod tests {
    use super::*;

    #[test]
    fn a_file_over_the_limit_is_refused_and_one_at_the_limit_read() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDir::new(folder.path());
        run.write("x", &[7; 10]).unwrap();
        assert_eq!(run.read("x", 10).unwrap(), [7; 10]);
        assert_eq!(run.read("x", 9).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }

    #[test]
    fn a_held_environment_is_released_once() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDir::new(folder.path());
        assert!(run.release().is_err(), "nothing is held");
        run.write(ENV_HELD, b"A=1").unwrap();
        run.release().unwrap();
        run.release().unwrap();
        assert_eq!(run.read(ENV, 10).unwrap(), b"A=1");
        assert!(!run.has(ENV_HELD));
    }

    #[test]
    fn a_capture_that_was_not_finished_is_removed_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDir::new(folder.path());
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
        let folder = tempfile::tempdir().unwrap();
        let run = RunDir::new(folder.path());
        run.write(MARKER, b"m").unwrap();
        run.write(ENV, b"e").unwrap();
        run.make_tmp().unwrap();
        fs::write(run.file(TMP).join("left"), b"l").unwrap();
        run.clear().unwrap();
        run.clear().unwrap();
        assert!(run.has(MARKER));
        assert!(!run.has(ENV) && !run.has(TMP));
    }
}
