//! Programs as they are handed out: built for size, their line tables in files of their own.

use anyhow::{Context as _, Result, bail};
use clap::Args;
use clap::builder::PossibleValuesParser;
use flopwatch_toolchain::command::Run;
use flopwatch_toolchain::progress::{say, step};
use flopwatch_toolchain::project;
use std::fs;
use std::path::{Path, PathBuf};

/// A program that is handed out; it has its package's name.
struct Program {
    name: &'static str,
    profile: &'static str,
    /// Whether it brings the C library along: it runs in containers of others.
    is_static: bool,
    /// Most bytes of it.
    budget: u64,
}

const PROGRAMS: [Program; 5] = [
    Program {
        name: "flopwatch",
        profile: "dist",
        is_static: false,
        budget: 40_000_000,
    },
    Program {
        name: "flopwatch-agent",
        profile: "dist",
        is_static: false,
        budget: 40_000_000,
    },
    Program {
        name: "flopwatch-launcher",
        profile: "dist",
        is_static: true,
        budget: 2_000_000,
    },
    Program {
        name: "flopwatch-operator",
        profile: "dist",
        is_static: false,
        budget: 40_000_000,
    },
    Program {
        name: "kubectl-flopwatch",
        profile: "dist-plugin",
        is_static: false,
        budget: 12_000_000,
    },
];

/// What is built, and where it goes.
#[derive(Debug, Args)]
pub(crate) struct ReleaseOptions {
    /// The programs [default: all].
    #[arg(value_parser = PossibleValuesParser::new(PROGRAMS.map(|program| program.name)))]
    programs: Vec<String>,
    /// The folder that they go to, each with its line tables beside it (NAME.debug) [default:
    /// target/release-files].
    #[arg(long)]
    output: Option<PathBuf>,
    /// Fail when a program is larger than its budget.
    #[arg(long)]
    strict: bool,
}

/// Builds them, and tells their sizes.
pub(crate) fn run(options: &ReleaseOptions) -> Result<()> {
    let folder = match &options.output {
        Some(folder) => folder.clone(),
        None => project::target_directory()?.join("release-files"),
    };
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let is_wanted =
        |program: &&Program| options.programs.is_empty() || options.programs.iter().any(|name| name == program.name);
    let mut large = Vec::new();
    for program in PROGRAMS.iter().filter(is_wanted) {
        let build = if program.is_static {
            project::build_static_in
        } else {
            project::build_to_hand_out
        };
        let programs = step(program.name, || build(program.name, program.profile))?;
        let path = programs.get(program.name).context("cargo built no such program")?;
        let bytes = split(path, &folder, program.name)?;
        let met = bytes <= program.budget;
        say(format_args!(
            "{}: {:.1} MB (budget {:.0} MB: {})",
            folder.join(program.name).display(),
            megabytes(bytes),
            megabytes(program.budget),
            if met { "met" } else { "missed" }
        ));
        if !met {
            large.push(program.name);
        }
    }
    if options.strict && !large.is_empty() {
        bail!("larger than their budgets: {}", large.join(", "));
    }
    Ok(())
}

fn megabytes(bytes: u64) -> f64 {
    f64::from(u32::try_from(bytes / 1000).unwrap_or(u32::MAX)) / 1000.0
}

/// Puts a program without its line tables into the folder, and the line tables beside it. The
/// program names the file, so that debuggers and its own backtraces find it where both lie in one
/// folder. Gives the program's bytes.
fn split(built: &Path, folder: &Path, name: &str) -> Result<u64> {
    let (program, tables) = (folder.join(name), folder.join(format!("{name}.debug")));
    let objcopy = || Run::new("objcopy");
    objcopy().arg("--only-keep-debug").arg(built).arg(&tables).quiet()?;
    let mut link = std::ffi::OsString::from("--add-gnu-debuglink=");
    link.push(&tables);
    objcopy()
        .arg("--strip-all")
        .arg(link)
        .arg(built)
        .arg(&program)
        .quiet()?;
    Ok(fs::metadata(&program)?.len())
}
