//! The repository: where it is and how its programs are built.

use crate::cache::Cache;
use crate::command::Run;
use crate::{cupti, golang, kernels, ncu, node, nsys, nvdisasm, python, torch};
use anyhow::{Context as _, Result};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A program of tests that compiles in a moment, with a name that no other has.
const SMALL_TEST: &str = "kernels";

/// What [`build_quickly`] compiles without optimization, though the workspace has it for tests:
/// what takes longest to compile so.
const NOT_OPTIMIZED: [&str; 7] = [
    "flopwatch-model",
    "flopwatch-trace",
    "hdf5-metno-src",
    "libsqlite3-sys",
    "regex-automata",
    "serde_json",
    "zlib-rs",
];

/// What tests run, by the variable that names it: a target of the workspace.
const FOR_TESTS: [(&str, &str); 6] = [
    ("FLOPWATCH_FAKE_NVML_LIBRARY", "flopwatch_fake_nvml"),
    ("FLOPWATCH_LAUNCHER", "flopwatch-launcher"),
    ("FLOPWATCH_PLUGIN", "kubectl-flopwatch"),
    ("FLOPWATCH_PROGRAM", "flopwatch"),
    ("FLOPWATCH_PYTHON_MODULE", "_native"),
    ("FLOPWATCH_WORKLOAD", "flopwatch-sample-workload"),
];

/// The folder of the workspace's `Cargo.toml`.
pub fn root() -> Result<PathBuf> {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .map(Path::to_owned)
        .context("xtask/toolchain lies in the workspace")
}

/// This program, for those that call its recipes. The build of the tests links it anew while it
/// runs (the first time under clippy's driver), and Linux then says that the old file is deleted;
/// the new one is at the same place.
pub fn own_program() -> Result<PathBuf> {
    Ok(replaced(std::env::current_exe()?))
}

/// The place of a program that `/proc/self/exe` names, whether or not its file was replaced.
fn replaced(program: PathBuf) -> PathBuf {
    let place = program.to_str().and_then(|name| name.strip_suffix(" (deleted)"));
    place.map(PathBuf::from).unwrap_or(program)
}

/// The captures of other people beside the repository, where they are.
pub fn corpus() -> Result<Option<PathBuf>> {
    let folder = root()?.join("../shared/corpus");
    Ok(folder.is_dir().then_some(folder))
}

/// What `cargo run` tells this program of itself. Build scripts that ask for a change of these
/// variables (ring's) would run, and all that needs them compile, anew whenever a recipe follows a
/// plain `cargo build`.
fn of_this_package() -> impl Iterator<Item = String> {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    names.filter(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"))
}

/// `cargo`, the one that runs this recipe when there is one, in the workspace.
pub fn cargo() -> Result<Run> {
    let run = Run::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())).dir(root()?);
    Ok(of_this_package().fold(run, Run::without))
}

/// How tests are compiled and run: by clippy's driver, which lints while it compiles, so that
/// nothing is compiled a second time for the lints; and [`tools`].
pub fn environment(cache: &Cache) -> Result<BTreeMap<String, String>> {
    let mut vars = tools(cache)?;
    vars.insert("RUSTC_WORKSPACE_WRAPPER".to_owned(), "clippy-driver".to_owned());
    Ok(vars)
}

/// What tests and benches run: the profilers, a disassembler, a Python with what tests need of
/// PyPI, one with PyTorch, Go, Node, the GPU kernels.
pub fn tools(cache: &Cache) -> Result<BTreeMap<String, String>> {
    let mut vars = BTreeMap::new();
    if let Some(python) = python::find(cache) {
        vars.insert("FLOPWATCH_PYTHON".to_owned(), python.display().to_string());
    }
    if let Some(python) = torch::find(cache) {
        vars.insert("FLOPWATCH_TORCH".to_owned(), python.display().to_string());
    }
    if let Some(go) = golang::find(cache) {
        vars.insert("FLOPWATCH_GO".to_owned(), go.display().to_string());
    }
    if let Some(node) = node::find(cache) {
        vars.insert("FLOPWATCH_NODE".to_owned(), node.program().display().to_string());
    }
    if let Some(nsys) = nsys::find(cache)? {
        vars.extend(nsys.environment());
    }
    vars.extend(nsys::newer_environment(cache));
    vars.extend(ncu::environment(cache)?);
    vars.extend(nvdisasm::environment(cache));
    vars.extend(cupti::environment(cache));
    if let Some(library) = kernels::built(cache)? {
        vars.insert("FLOPWATCH_CUDA_KERNELS".to_owned(), library.display().to_string());
    }
    Ok(vars)
}

/// What `cargo metadata` says of the workspace's own packages.
pub fn metadata() -> Result<String> {
    cargo()?.args(["metadata", "--no-deps", "--format-version=1"]).output()
}

/// The lines that `git` prints in the workspace.
pub fn git(arguments: &[&str]) -> Result<Vec<String>> {
    let output = Run::new("git").dir(root()?).args(arguments).output()?;
    Ok(output.lines().map(str::to_owned).collect())
}

/// The folder that cargo builds into.
pub fn target_directory() -> Result<PathBuf> {
    let metadata: Value = serde_json::from_str(&metadata()?).context("`cargo metadata` gave no JSON")?;
    let folder = metadata.get("target_directory").and_then(Value::as_str);
    folder
        .map(PathBuf::from)
        .context("`cargo metadata` names no target directory")
}

/// Builds the binaries of some packages in the `rig` profile; gives each binary's path by its name.
pub fn build_binaries(packages: &[&str]) -> Result<BTreeMap<String, PathBuf>> {
    build(of_packages(
        cargo()?.args(["build", "--profile", "rig", "--bins"]),
        packages,
    ))
}

/// Builds the binaries of a package in one of the profiles of what is handed out; gives each
/// binary's path by its name.
pub fn build_to_hand_out(package: &str, profile: &str) -> Result<BTreeMap<String, PathBuf>> {
    build(of_packages(
        cargo()?.args(["build", "--locked", "--profile", profile, "--bins"]),
        &[package],
    ))
}

/// Builds the shared library of a package in the `rig` profile.
pub fn build_library(package: &str, name: &str) -> Result<PathBuf> {
    let run = cargo()?.args(["build", "--profile", "rig", "--lib", "-p", package]);
    let mut built = compile(run, |_| ())?;
    built
        .libraries
        .remove(name)
        .with_context(|| format!("cargo built no {name}"))
}

/// Builds the binaries of some packages as quickly as that goes: without their default features,
/// and without optimization of `NOT_OPTIMIZED`. The profile is otherwise the one that this recipe
/// was compiled in, so that nothing that both need is compiled twice.
pub fn build_quickly(packages: &[&str]) -> Result<BTreeMap<String, PathBuf>> {
    let levels = NOT_OPTIMIZED.map(|package| format!("profile.dev.package.{package}.opt-level=0"));
    let run = cargo()?
        .args(["build", "--bins", "--no-default-features"])
        .args(levels.iter().flat_map(|level| ["--config", level]))
        // For programs that are run, and neither debugged nor changed.
        .env("CARGO_PROFILE_DEV_DEBUG", "false")
        .env("CARGO_INCREMENTAL", "0");
    build(of_packages(run, packages))
}

/// Checks that what [`build_quickly`] builds compiles. It lets everything else go first.
pub fn check_quickly(packages: &[&str]) -> Result<()> {
    let run = cargo()?.args(["check", "--quiet", "--bins", "--no-default-features"]);
    of_packages(run, packages).patiently().quiet()
}

/// Names of the crates that [`build_quickly`] compiles for some packages.
pub fn crates_of(packages: &[&str]) -> Result<BTreeSet<String>> {
    let run = cargo()?.args([
        "tree",
        "--no-default-features",
        "--edges=normal,build",
        "--prefix=none",
        "--format={p}",
    ]);
    let tree = of_packages(run, packages).output()?;
    let names = tree.lines().filter_map(|line| line.split_whitespace().next());
    Ok(names.map(str::to_owned).collect())
}

/// Where the binaries of the tests' build lie, the plugin of kubectl among them.
pub fn built() -> Result<PathBuf> {
    Ok(target_directory()?.join("debug"))
}

/// Compiles all that the workspace has, with clippy's driver as compiler: programs, libraries,
/// tests. Tells of each warning.
pub fn build_all(cache: &Cache, warned: impl FnMut(&str)) -> Result<Artifacts> {
    let run = cargo()?.envs(environment(cache)?);
    compile(run.args(["build", "--workspace", "--all-targets"]), warned)
}

/// Compiles some tests as [`build_all`] does. Tells of each warning.
pub fn build_tests(cache: &Cache, tests: &[&str], warned: impl FnMut(&str)) -> Result<Artifacts> {
    let run = cargo()?.envs(environment(cache)?);
    compile(run.args(["build", "--workspace"]).args(tests), warned)
}

/// Compiles the tests that stand in libraries and programs, without what they might run.
pub fn build_unit_tests(cache: &Cache, targets: &[&str]) -> Result<Artifacts> {
    let run = cargo()?.envs(environment(cache)?);
    compile(run.args(["test", "--no-run", "--workspace"]).args(targets), |_| ())
}

/// What tests run of the workspace's own, by the variables that name it to them, out of what
/// [`build_all`] built.
pub fn for_tests(built: &Artifacts) -> Result<BTreeMap<String, String>> {
    let mut vars = BTreeMap::new();
    for (variable, name) in FOR_TESTS {
        let path = built.programs.get(name).or_else(|| built.libraries.get(name));
        let path = path.with_context(|| format!("cargo built no {name}"))?;
        vars.insert(variable.to_owned(), path.display().to_string());
    }
    Ok(vars)
}

/// Builds some programs as [`build_all`] does: what it compiled is not compiled once more.
pub fn build_beside_tests(cache: &Cache, programs: &[&str]) -> Result<Artifacts> {
    // With a test among the targets, dependencies have the features that they have for tests.
    let run = cargo()?.envs(environment(cache)?);
    let mut run = run.args(["build", "--workspace", "--test", SMALL_TEST]);
    for program in programs {
        run = run.args(["--bin", program]);
    }
    compile(run, |_| ())
}

/// Builds one package's binaries in the `rig` profile linked statically (glibc inside), in a target
/// folder of its own.
pub fn build_static(package: &str) -> Result<BTreeMap<String, PathBuf>> {
    build_static_in(package, "rig")
}

/// Builds one package's binaries as [`build_static`] does, in the profile `profile`.
pub fn build_static_in(package: &str, profile: &str) -> Result<BTreeMap<String, PathBuf>> {
    let run = cargo()?
        .env("RUSTFLAGS", "-C target-feature=+crt-static")
        .env("CARGO_TARGET_DIR", target_directory()?.join("static"))
        // Naming the target keeps the flags away from build scripts and procedural macros, which
        // cannot be static.
        .args([
            "build",
            "--profile",
            profile,
            "--bins",
            "--target",
            "x86_64-unknown-linux-gnu",
        ]);
    build(of_packages(run, &[package]))
}

fn of_packages(run: Run, packages: &[&str]) -> Run {
    packages.iter().fold(run, |run, package| run.args(["-p", package]))
}

fn build(run: Run) -> Result<BTreeMap<String, PathBuf>> {
    Ok(compile(run, |_| ())?.programs)
}

/// What cargo built: each path by the name of its target.
#[derive(Debug, Default)]
pub struct Artifacts {
    /// Binaries and examples.
    pub programs: BTreeMap<String, PathBuf>,
    /// Shared libraries.
    pub libraries: BTreeMap<String, PathBuf>,
    /// Test programs.
    pub tests: Vec<TestProgram>,
}

/// A program that cargo made of tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestProgram {
    /// The folder of the package, in which its tests run.
    pub folder: PathBuf,
    /// The name of the target: a library's crate, a program, a file or folder of `tests/`.
    pub target: String,
    /// Whether the tests stand in the library or program itself, not in `tests/`.
    pub in_source: bool,
    /// Path of the executable.
    pub file: PathBuf,
}

impl TestProgram {
    /// The program as cargo would run it, in the folder of its package.
    pub fn run(&self) -> Run {
        let run = of_this_package().fold(Run::new(&self.file), Run::without);
        run.dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder)
    }
}

/// Runs a `cargo build`.
fn compile(run: Run, mut warned: impl FnMut(&str)) -> Result<Artifacts> {
    let mut built = Artifacts::default();
    let mut errors = String::new();
    let outcome = run
        .args(["--quiet", "--message-format=json"])
        .lines(|line| match message(line) {
            Some(Message::Program(name, path)) => drop(built.programs.insert(name, path)),
            Some(Message::Library(name, path)) => drop(built.libraries.insert(name, path)),
            Some(Message::Tests(program)) => built.tests.push(program),
            Some(Message::Warning(text)) => warned(&text),
            Some(Message::Error(text)) => errors.push_str(&text),
            None => {}
        });
    outcome.map_err(|error| {
        if errors.is_empty() {
            error
        } else {
            anyhow::anyhow!("{errors}")
        }
    })?;
    Ok(built)
}

enum Message {
    Program(String, PathBuf),
    Library(String, PathBuf),
    Tests(TestProgram),
    Warning(String),
    Error(String),
}

fn message(line: &str) -> Option<Message> {
    let value: Value = serde_json::from_str(line).ok()?;
    match value.get("reason")?.as_str()? {
        "compiler-artifact" => artifact(&value),
        "compiler-message" => {
            let message = value.get("message")?;
            let text = message.get("rendered")?.as_str()?.to_owned();
            match message.get("level")?.as_str()? {
                "error" => Some(Message::Error(text)),
                "warning" => Some(Message::Warning(text)),
                _ => None,
            }
        }
        _ => None,
    }
}

fn artifact(value: &Value) -> Option<Message> {
    let target = value.get("target")?;
    let name = target.get("name")?.as_str()?.to_owned();
    // A program's own tests have its name.
    if value.get("profile")?.get("test")?.as_bool()? {
        let kinds = target.get("kind")?.as_array()?;
        // A bench has no harness, and is a recipe's to run.
        if kinds.iter().any(|kind| kind == "bench") {
            return None;
        }
        return Some(Message::Tests(TestProgram {
            folder: Path::new(value.get("manifest_path")?.as_str()?).parent()?.to_owned(),
            target: name,
            in_source: !kinds.iter().any(|kind| kind == "test"),
            file: value.get("executable")?.as_str()?.into(),
        }));
    }
    if let Some(path) = value.get("executable")?.as_str() {
        return Some(Message::Program(name, path.into()));
    }
    let shared = target
        .get("crate_types")?
        .as_array()?
        .iter()
        .any(|kind| kind == "cdylib");
    let mut files = value.get("filenames")?.as_array()?.iter().filter_map(Value::as_str);
    let library = files.find(|file| shared && Path::new(file).extension().is_some_and(|end| end == "so"))?;
    Some(Message::Library(name, library.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = r#""reason":"compiler-artifact","profile":{"test":false}"#;

    #[test]
    fn a_recipe_that_was_linked_anew_while_it_runs_is_found_where_it_was() {
        for name in ["/t/debug/xtask", "/t/debug/xtask (deleted)"] {
            assert_eq!(replaced(name.into()), Path::new("/t/debug/xtask"));
        }
        assert!(own_program().unwrap().is_file());
    }

    #[test]
    fn cargo_names_its_shared_libraries() {
        let line = |kind: &str| {
            format!(
                r#"{{{OWN},"target":{{"name":"x","crate_types":["{kind}"]}},"executable":null,"filenames":["/t/libx.so"]}}"#
            )
        };
        let found = message(&line("cdylib"));
        assert!(matches!(found, Some(Message::Library(name, path)) if name == "x" && path == Path::new("/t/libx.so")));
        assert!(message(&line("lib")).is_none());
    }

    #[test]
    fn a_programs_own_tests_are_not_the_program_and_know_the_folder_of_their_package() {
        let line = |kind: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","profile":{{"test":true}},"manifest_path":"/w/p/Cargo.toml","target":{{"name":"x","kind":["{kind}"]}},"executable":"/t/x-1"}}"#
            )
        };
        for (kind, in_source) in [("bin", true), ("lib", true), ("test", false)] {
            let Some(Message::Tests(program)) = message(&line(kind)) else {
                panic!("{kind}");
            };
            let expected = TestProgram {
                folder: "/w/p".into(),
                target: "x".to_owned(),
                in_source,
                file: "/t/x-1".into(),
            };
            assert_eq!(program, expected);
        }
        assert!(message(&line("bench")).is_none());
        // What was only looked at has no program.
        assert!(message(&line("test").replace("\"/t/x-1\"", "null")).is_none());
    }

    #[test]
    fn cargo_names_its_programs_and_what_it_complains_of() {
        let program = format!(r#"{{{OWN},"target":{{"name":"x"}},"executable":"/t/x"}}"#);
        let found = message(&program);
        assert!(matches!(found, Some(Message::Program(name, path)) if name == "x" && path == Path::new("/t/x")));
        let error = r#"{"reason":"compiler-message","message":{"level":"error","rendered":"bad"}}"#;
        assert!(matches!(message(error), Some(Message::Error(text)) if text == "bad"));
        let warning = error.replace("error", "warning");
        assert!(matches!(message(&warning), Some(Message::Warning(text)) if text == "bad"));
        assert!(message("not JSON").is_none());
    }
}
