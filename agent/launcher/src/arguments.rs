//! The command line of the launcher.

use std::ffi::{CStr, CString, OsStr};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::needed::{Driver, Needed};
use crate::{copy, hold, profile, reaper, run, run_dir, stub, supervisor};

/// How the program is called.
const USAGE: &str = "usage:
  launcher install [--cupti SRC] DIR
  launcher copy [--for PART,...] SRC DIR
  launcher run [--run-dir DIR] [--tools-dir DIR] [--claim-seconds N] [--session-seconds N] -- COMMAND [ARGUMENT...]
  launcher hold [--run-dir DIR] [--limit-seconds N] -- COMMAND [ARGUMENT...]
  launcher profile [--run-dir DIR] [--begin-seconds N] [--limit-seconds N] -- PROFILER [ARGUMENT...]
  launcher begin DIR
  launcher release DIR
  launcher shutdown DIR
  launcher stub FILE
  launcher keeper [--deadline-seconds N] [--run-dir DIR --nsys FILE [--beside-others]] [--begin-collecting DIR BOUNDS] [--end-collecting DIR] -- COMMAND [ARGUMENT...]
  launcher write FILE TEXT
";

/// Exit code for a command line that is none of the above.
const EXIT_USAGE: i32 = 2;

/// Runs the subcommand that the arguments name; returns the process's exit code.
pub fn dispatch(arguments: &[CString], environment: &[CString]) -> i32 {
    let Some((name, rest)) = arguments.get(1..).and_then(|rest| rest.split_first()) else {
        return misused("no subcommand");
    };
    match (name.to_bytes(), rest) {
        (b"install", [dir]) => report(copy::install(path(dir))),
        (b"install", [option, cupti, dir]) if option.to_bytes() == b"--cupti" => install_with(path(cupti), path(dir)),
        (b"copy", [source, dir]) => report(copy::copy(path(source), path(dir), &Needed::everything())),
        (b"copy", [option, parts, source, dir]) if option.to_bytes() == b"--for" => {
            let needed = Needed::of(&parts.to_string_lossy(), Driver::of_node());
            report(copy::copy(path(source), path(dir), &needed))
        }
        (b"run", rest) => started(run_options(rest), environment, run::run),
        (b"hold", rest) => started(hold_options(rest), environment, hold::hold),
        (b"profile", rest) => started(profile_options(rest), environment, profile::profile),
        (b"begin", [dir]) => done(run_dir::RunDir::new(path(dir)).begin(), "begin at", dir),
        (b"release", [dir]) => done(run_dir::RunDir::new(path(dir)).release(), "release", dir),
        (b"shutdown", [dir]) => {
            let asked = run_dir::RunDir::new(path(dir)).shut_down();
            done(asked, "shut down the session of", dir)
        }
        (b"stub", [file]) => stub::stub(file, environment),
        (b"keeper", rest) => started(supervisor_options(rest), environment, reaper::keep),
        (b"write", [file, text]) => done(run_dir::write_atomically(path(file), text.to_bytes()), "write", file),
        _ => misused("unknown subcommand or wrong number of arguments"),
    }
}

/// Runs a command with the options that stand before it.
fn started<T>(
    read: Result<(T, &[CString]), String>,
    environment: &[CString],
    run: fn(&T, &[CString], &[CString]) -> i32,
) -> i32 {
    match read {
        Ok((options, command)) => run(&options, command, environment),
        Err(error) => misused(&error),
    }
}

/// Installs the launcher, and of the folder of copies of libcupti what the node's driver may need.
/// An image without them keeps no pod from its start: the CUDA tracer says what it lacks.
fn install_with(cupti: &Path, dir: &Path) -> i32 {
    match report(copy::install(dir)) {
        0 if cupti.is_dir() => report(copy::copy(cupti, dir, &Needed::of("cuda", Driver::of_node()))),
        0 => {
            print_line(&format!("{}: no copy of libcupti is there", cupti.display()));
            0
        }
        failed => failed,
    }
}

fn path(text: &CStr) -> &Path {
    Path::new(OsStr::from_bytes(text.to_bytes()))
}

fn print_line(text: &str) {
    // With standard error closed there is nobody to tell.
    drop(writeln!(std::io::stderr(), "flopwatch-launcher: {text}"));
}

fn misused(error: &str) -> i32 {
    print_line(&format!("{error}\n{USAGE}"));
    EXIT_USAGE
}

/// Exit code of what was to be done at a path.
fn done(outcome: std::io::Result<()>, verb: &str, at: &CStr) -> i32 {
    match outcome {
        Ok(()) => 0,
        Err(error) => {
            print_line(&format!("cannot {verb} {}: {error}", path(at).display()));
            1
        }
    }
}

fn report(outcome: Result<(PathBuf, u64), copy::CopyError>) -> i32 {
    match outcome {
        Ok((path, bytes)) => {
            drop(writeln!(std::io::stdout(), "{}: {bytes} bytes", path.display()));
            0
        }
        Err(error) => {
            print_line(&error.to_string());
            1
        }
    }
}

/// Options before `--`, and the command behind it.
struct Words<'a> {
    options: std::slice::Iter<'a, CString>,
    command: &'a [CString],
}

impl<'a> Words<'a> {
    fn split(words: &'a [CString]) -> Result<Self, String> {
        let end = words
            .iter()
            .position(|word| word.as_bytes() == b"--")
            .ok_or("no `--` before the command")?;
        let command = words
            .get(end + 1..)
            .filter(|command| !command.is_empty())
            .ok_or("no command behind `--`")?;
        Ok(Self {
            options: words.get(..end).unwrap_or_default().iter(),
            command,
        })
    }

    fn value(&mut self, of: &CStr) -> Result<&'a CString, String> {
        self.options
            .next()
            .ok_or_else(|| format!("{} needs a value", of.to_string_lossy()))
    }

    fn path(&mut self, of: &CStr) -> Result<PathBuf, String> {
        self.value(of).map(|value| path(value).to_owned())
    }

    fn seconds(&mut self, of: &CStr) -> Result<Duration, String> {
        let value = self.value(of)?.to_string_lossy();
        value
            .parse::<u32>()
            .map(|seconds| Duration::from_secs(seconds.into()))
            .map_err(|_not_a_number| {
                format!(
                    "{} takes a whole number of seconds, not {value:?}",
                    of.to_string_lossy()
                )
            })
    }
}

fn unknown(option: &CStr) -> String {
    format!("unknown option {}", option.to_string_lossy())
}

/// Reads the arguments of `run`.
pub fn run_options(words: &[CString]) -> Result<(run::Options, &[CString]), String> {
    let mut words = Words::split(words)?;
    let mut options = run::Options {
        run_dir: run_dir::DEFAULT_RUN_DIR.into(),
        tools_dir: run_dir::DEFAULT_TOOLS_DIR.into(),
        claim: Duration::from_secs(3),
        session: Duration::from_secs(15),
    };
    while let Some(option) = words.options.next() {
        match option.to_bytes() {
            b"--run-dir" => options.run_dir = words.path(option)?,
            b"--tools-dir" => options.tools_dir = words.path(option)?,
            b"--claim-seconds" => options.claim = words.seconds(option)?,
            b"--session-seconds" => options.session = words.seconds(option)?,
            _ => return Err(unknown(option)),
        }
    }
    Ok((options, words.command))
}

/// Longest stay after the program's end: the profiler writes the capture within two minutes or not
/// at all.
const MAX_HOLD_DURATION: Duration = Duration::from_mins(3);

/// Reads the arguments of `hold`.
pub fn hold_options(words: &[CString]) -> Result<(hold::Options, &[CString]), String> {
    let mut words = Words::split(words)?;
    let mut options = hold::Options {
        run_dir: run_dir::DEFAULT_RUN_DIR.into(),
        limit: MAX_HOLD_DURATION,
    };
    while let Some(option) = words.options.next() {
        match option.to_bytes() {
            b"--run-dir" => options.run_dir = words.path(option)?,
            b"--limit-seconds" => options.limit = words.seconds(option)?,
            _ => return Err(unknown(option)),
        }
    }
    Ok((options, words.command))
}

/// Longest wait for the agent before the profiler starts the program: a capture may wait for its
/// turn as long.
const AGENT_TIMEOUT: Duration = Duration::from_mins(10);

/// Reads the arguments of `profile`.
pub fn profile_options(words: &[CString]) -> Result<(profile::Options, &[CString]), String> {
    let mut words = Words::split(words)?;
    let mut options = profile::Options {
        run_dir: run_dir::DEFAULT_RUN_DIR.into(),
        begin: AGENT_TIMEOUT,
        limit: MAX_HOLD_DURATION,
    };
    while let Some(option) = words.options.next() {
        match option.to_bytes() {
            b"--run-dir" => options.run_dir = words.path(option)?,
            b"--begin-seconds" => options.begin = words.seconds(option)?,
            b"--limit-seconds" => options.limit = words.seconds(option)?,
            _ => return Err(unknown(option)),
        }
    }
    Ok((options, words.command))
}

/// Reads the arguments of `supervisor`.
pub fn supervisor_options(words: &[CString]) -> Result<(supervisor::Options, &[CString]), String> {
    let mut words = Words::split(words)?;
    let mut options = supervisor::Options::default();
    let (mut run_dir, mut nsys, mut beside_others) = (None, None, false);
    while let Some(option) = words.options.next() {
        match option.to_bytes() {
            b"--deadline-seconds" => options.deadline = Some(words.seconds(option)?),
            b"--run-dir" => run_dir = Some(words.path(option)?),
            b"--nsys" => nsys = Some(words.path(option)?),
            b"--beside-others" => beside_others = true,
            b"--begin-collecting" => {
                let folder = words.path(option)?;
                options.begin_collecting = Some((folder, words.value(option)?.to_string_lossy().into_owned()));
            }
            b"--end-collecting" => options.end_collecting = Some(words.path(option)?),
            _ => return Err(unknown(option)),
        }
    }
    options.session = match (run_dir, nsys) {
        (Some(run_dir), Some(nsys)) => Some(supervisor::Session {
            run_dir,
            nsys,
            beside_others,
        }),
        (None, None) if !beside_others => None,
        _ => return Err("--run-dir and --nsys go together, and --beside-others with them".into()),
    };
    Ok((options, words.command))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(list: &[&str]) -> Vec<CString> {
        list.iter().map(|word| CString::new(*word).unwrap()).collect()
    }

    #[test]
    fn what_stands_behind_the_dashes_is_the_workloads() {
        let words = words(&[
            "--claim-seconds",
            "1",
            "--tools-dir",
            "/t",
            "--",
            "sh",
            "--",
            "--run-dir",
        ]);
        let (options, command) = run_options(&words).unwrap();
        assert_eq!(options.claim, Duration::from_secs(1));
        assert_eq!(options.run_dir, Path::new("/flopwatch/run"));
        assert_eq!(options.tools_dir, Path::new("/t"));
        assert_eq!(command.len(), 3);
    }

    #[test]
    fn wrong_options_say_what_is_wrong() {
        let cases: [(&[&str], &str); 5] = [
            (&["sh"], "no `--` before the command"),
            (&["--"], "no command behind `--`"),
            (
                &["--claim-seconds", "x", "--", "a"],
                "--claim-seconds takes a whole number of seconds, not \"x\"",
            ),
            (&["--run-dir", "--", "a"], "--run-dir needs a value"),
            (&["--what", "--", "a"], "unknown option --what"),
        ];
        for (line, error) in cases {
            assert_eq!(run_options(&words(line)).unwrap_err(), error);
        }
        assert!(supervisor_options(&words(&["--nsys", "/n", "--", "a"])).is_err());
        assert!(hold_options(&words(&["--claim-seconds", "1", "--", "a"])).is_err());
    }
}
