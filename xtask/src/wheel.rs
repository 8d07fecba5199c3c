//! `cargo xtask wheel`: the Python package as pip installs it, and a try of it in a clean
//! environment of each Python of this machine.

use anyhow::{Context as _, Result, bail};
use flopwatch_toolchain::cache::{Cache, remove};
use flopwatch_toolchain::command::Run;
use flopwatch_toolchain::progress::{result, say, step};
use flopwatch_toolchain::project::{self, Artifacts};
use flopwatch_toolchain::{cmake, python};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// What a clean environment must be able to do with it; nothing but Python's own library is there.
const SMOKE: &str = include_str!("wheel/smoke.py");
/// The folder of the package, and the library that is its module.
const PACKAGE: &str = "flopwatch";
const MODULE: &str = "_native";
/// The program that the wheel brings, which is also its package in the workspace.
const PROGRAM: &str = "flopwatch";
/// The oldest that the package is for.
const OLDEST_MINOR: u32 = 10;
/// The newest that is looked for by name.
const NEWEST_MINOR: u32 = 30;

/// How it is built.
#[derive(Debug, clap::Args)]
pub(crate) struct WheelOptions {
    /// Build it as it is handed out: small, and for every Linux whose C library is as new as this
    /// one's.
    #[arg(long)]
    release: bool,
    /// Folder for the wheel; `wheels` below cargo's target folder by default.
    #[arg(long)]
    output: Option<PathBuf>,
}

impl WheelOptions {
    /// As it is handed out.
    pub(crate) const HANDED_OUT: Self = Self {
        release: true,
        output: None,
    };
}

/// Builds the wheel, and tries it.
pub(crate) fn run(cache: &Cache, options: &WheelOptions) -> Result<()> {
    let output = match &options.output {
        Some(output) => output.clone(),
        None => folder()?,
    };
    let wheel = step("wheel", || build(cache, options, &output))?;
    attempts(&wheel)
}

/// Makes the wheel of the module that the tests' build made, and tries it. Building it by maturin
/// would compile the module and all below it once more, with the features that they have without
/// the workspace; what is handed out is built so.
pub(crate) fn of_tests(cache: &Cache, built: &Artifacts) -> Result<()> {
    let module = built.libraries.get(MODULE).context("cargo built no module of Python")?;
    let program = built
        .programs
        .get(PROGRAM)
        .context("cargo built no program `flopwatch`")?;
    let wheel = step("wheel", || assemble(cache, module, program, &folder()?))?;
    attempts(&wheel)
}

fn folder() -> Result<PathBuf> {
    Ok(project::target_directory()?.join("wheels"))
}

/// Packs the package with a module and a program in a folder, which it empties first; gives the
/// wheel's file. What the wheel says of itself comes from maturin, as it does in what is handed
/// out.
fn assemble(cache: &Cache, module: &Path, program: &Path, output: &Path) -> Result<PathBuf> {
    let tools = python::package_tools(cache)?.join("bin");
    let sources = project::root()?.join("python");
    remove(output)?;
    let contents = output.join("contents");
    copy(&sources.join(PACKAGE), &contents.join(PACKAGE))?;
    strip(module, &contents.join(PACKAGE).join("_native.abi3.so"))?;
    Run::new(tools.join("maturin"))
        .args(["pep517", "write-dist-info", "--metadata-directory"])
        .arg(&contents)
        .arg("--interpreter")
        .arg(tools.join("python3"))
        .dir(&sources)
        .quiet()?;
    pack(&tools, &contents, program, output)
}

/// Adds the program to an unpacked wheel as pip installs scripts, and packs it into the folder;
/// gives the wheel's file.
fn pack(tools: &Path, contents: &Path, program: &Path, output: &Path) -> Result<PathBuf> {
    let mut entries = std::fs::read_dir(contents)?.flatten().map(|entry| entry.file_name());
    let name = entries
        .find_map(|name| Some(name.to_str()?.strip_suffix(".dist-info")?.to_owned()))
        .context("the wheel says nothing of itself")?;
    let scripts = contents.join(format!("{name}.data/scripts"));
    std::fs::create_dir_all(&scripts)?;
    strip(program, &scripts.join(PROGRAM))?;
    Run::new(tools.join("python3"))
        .args(["-m", "wheel", "pack", "--dest-dir"])
        .arg(output)
        .arg(contents)
        .quiet()?;
    made(output)
}

/// Copies a library or a program without its line tables: they are most of it, and would be packed,
/// and unpacked for each Python.
fn strip(built: &Path, to: &Path) -> Result<()> {
    Run::new("strip")
        .args(["--strip-debug", "-o"])
        .arg(to)
        .arg(built)
        .quiet()
}

/// The package's files, less what Python's own runs left among them.
fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let (name, kind) = (entry.file_name(), entry.file_type()?);
        if kind.is_dir() && name != "__pycache__" {
            copy(&entry.path(), &to.join(name))?;
        } else if kind.is_file() {
            std::fs::copy(entry.path(), to.join(name))?;
        }
    }
    Ok(())
}

fn made(output: &Path) -> Result<PathBuf> {
    let mut files = std::fs::read_dir(output)?.flatten().map(|entry| entry.path());
    let wheel = files.find(|path| path.extension() == Some(OsStr::new("whl")));
    wheel.context("no wheel was made")
}

/// Tries a wheel in a clean environment of each Python that it is for.
fn attempts(wheel: &Path) -> Result<()> {
    let pythons = pythons()?;
    if pythons.is_empty() {
        bail!("no Python 3.{OLDEST_MINOR} or newer on this machine: the wheel was not tried");
    }
    for (minor, python) in &pythons {
        step(&format!("Python 3.{minor}"), || attempt(python, wheel))?;
    }
    result(format_args!("{}", wheel.display()));
    Ok(())
}

/// Makes the wheel in a folder, which it empties first; gives its file.
pub(crate) fn build(cache: &Cache, options: &WheelOptions, output: &Path) -> Result<PathBuf> {
    cmake::ensure()?;
    let tools = python::package_tools(cache)?.join("bin");
    remove(output)?;
    // Line tables are four fifths of what is handed out.
    let (profile, more) = if options.release {
        ("dist", ["--compatibility", "pypi", "--strip"].as_slice())
    } else {
        ("dev", ["--compatibility", "linux"].as_slice())
    };
    let bare = output.join("bare");
    Run::new(tools.join("maturin"))
        .args(["build", "--quiet", "--locked", "--profile", profile])
        .args(more)
        .arg("--manifest-path")
        .arg(project::root()?.join("python/Cargo.toml"))
        .arg("--out")
        .arg(&bare)
        .quiet()?;
    let programs = if options.release {
        project::build_to_hand_out(PROGRAM, "dist")?
    } else {
        project::build_binaries(&[PROGRAM])?
    };
    let program = programs.get(PROGRAM).context("cargo built no program `flopwatch`")?;
    let unpacked = output.join("unpacked");
    Run::new(tools.join("python3"))
        .args(["-m", "wheel", "unpack", "--dest"])
        .arg(&unpacked)
        .arg(made(&bare)?)
        .quiet()?;
    let contents = std::fs::read_dir(&unpacked)?.flatten().next();
    let contents = contents.context("the wheel was empty")?.path();
    pack(&tools, &contents, program, output)
}

/// The interpreters that the package is for, one of each version: on PATH, and those of pyenv.
fn pythons() -> Result<BTreeMap<u32, PathBuf>> {
    let names = (OLDEST_MINOR..=NEWEST_MINOR).map(|minor| format!("python3.{minor}"));
    let mut candidates: Vec<PathBuf> = ["python3".to_owned()]
        .into_iter()
        .chain(names)
        .map(PathBuf::from)
        .collect();
    let pyenv = std::env::var_os("PYENV_ROOT").map(PathBuf::from);
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".pyenv"));
    if let Some(versions) = pyenv
        .or_else(home)
        .and_then(|root| std::fs::read_dir(root.join("versions")).ok())
    {
        candidates.extend(versions.flatten().map(|version| version.path().join("bin/python3")));
    }
    let mut found = BTreeMap::new();
    for candidate in candidates {
        let ask = "import sys, venv, ensurepip; print(sys.version_info[0] * 1000 + sys.version_info[1])";
        // Most of these are not there.
        let Ok(version) = Run::new(&candidate).args(["-c", ask]).output() else {
            continue;
        };
        let minor = version.trim().parse::<u32>()?.checked_sub(3000);
        if let Some(minor) = minor.filter(|minor| *minor >= OLDEST_MINOR) {
            found.entry(minor).or_insert(candidate);
        }
    }
    Ok(found)
}

fn attempt(python: &Path, wheel: &Path) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let environment = folder.path().join("environment");
    Run::new(python).args(["-m", "venv"]).arg(&environment).quiet()?;
    let python = environment.join("bin/python3");
    Run::new(&python)
        .args(["-m", "pip", "install", "--quiet", "--no-index"])
        .arg(wheel)
        .quiet()?;
    // Away from the sources: what is imported must be what was installed.
    let said = Run::new(&python)
        .args(["-I", "-c", SMOKE])
        .dir(folder.path())
        .output()?;
    say(format_args!("  {}", said.trim()));
    Run::new(&python)
        .args(["-m", "flopwatch", "flame", "trace.json", "-o", "flame.html"])
        .dir(folder.path())
        .quiet()?;
    let page = std::fs::read_to_string(folder.path().join("flame.html"))?;
    if !page.contains("matmul") {
        bail!("the flame graph of the installed command does not name the kernel");
    }
    let tables = Run::new(environment.join("bin").join(PROGRAM))
        .args(["summary", "trace.json"])
        .dir(folder.path())
        .output()?;
    if !tables.contains("matmul") {
        bail!("the tables of the installed program do not name the kernel");
    }
    Ok(())
}
