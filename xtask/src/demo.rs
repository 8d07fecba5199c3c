//! The README's first command: profile a sample program on this machine, without a cluster.

use crate::web;
use anyhow::{Context as _, Result, anyhow};
use flopwatch_toolchain::cache::Cache;
use flopwatch_toolchain::command::Run;
use flopwatch_toolchain::progress::{say, step};
use flopwatch_toolchain::{debian, nsys, project};

const RECORDER: &str = "flopwatch";
const WORKLOAD: &str = "flopwatch-sample-workload";
/// What is compiled for a recording; each with no more than the commands for one machine need.
pub(crate) const PROGRAMS: [&str; 2] = [RECORDER, WORKLOAD];
const MANIFEST: &str = "examples/record.yaml";
/// A little longer than the manifest's window, so that the program ends by itself.
const WORKLOAD_ARGS: [&str; 5] = [
    "--quiet",
    "--threads=2",
    "--processes=2",
    "--range-micros=500",
    "--seconds=8",
];

/// Sets up, builds, and becomes the recorder.
pub(crate) fn run(cache: &Cache, record_args: &[String]) -> Result<()> {
    step("Debian packages", || debian::install(debian::BUILD))?;
    let (binaries, nsys) = std::thread::scope(|scope| {
        // It comes over the network while the compiler works.
        let nsys = scope.spawn(|| step("Nsight Systems", || nsys::ensure(cache)));
        if let Err(error) = step("building the viewer", || web::build_quickly(cache)) {
            say(format_args!("the result will be served without the viewer: {error:#}"));
        }
        let binaries = step("building the recorder and a sample workload", || {
            project::build_quickly(&PROGRAMS)
        });
        (binaries, nsys.join())
    });
    let nsys = nsys.unwrap_or_else(|_| Err(anyhow!("the step that looks for Nsight Systems panicked")))?;
    let binaries = binaries?;
    let binary = |name: &str| {
        binaries
            .get(name)
            .with_context(|| format!("cargo built no binary {name}"))
    };
    let (recorder, workload) = (binary(RECORDER)?, binary(WORKLOAD)?);
    let output = project::target_directory()?.join("demo");
    say(format_args!(
        "{RECORDER} record -f {MANIFEST} -- {WORKLOAD} {}",
        WORKLOAD_ARGS.join(" ")
    ));
    say(format_args!(
        "for a program of yours: {} record ./your-program",
        recorder.display()
    ));
    let recorder = Run::new(recorder).dir(project::root()?).envs(nsys.environment());
    let recorder = recorder
        .args(["record", "-f", MANIFEST, "--force", "--output"])
        .arg(output)
        .args(record_args);
    Err(recorder.arg("--").arg(workload).args(WORKLOAD_ARGS).replace())
}
