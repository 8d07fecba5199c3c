//! From what was recorded to the files that the manifest lists.

use std::future::pending;
use std::path::{Path, PathBuf};

use flopwatch_api::artifact::{CUDA_TRACE, Output, RING, SAMPLES, report_name, stream_name};
use flopwatch_api::profiler::TraceCategory;
use flopwatch_model::Category;
use flopwatch_pipeline::failure::Failure;
use flopwatch_pipeline::products::{self, Recipe, Stage, Wanted, nsys_imports};
use flopwatch_pipeline::sandbox_dir::{self, SandboxDir};
use flopwatch_pipeline::steps::{ChildRunner, Limits, ToolJob};
use flopwatch_pipeline::transform::Samples;
use flopwatch_summary::Summary;

use super::session::Captured;
use super::{Error, Options, io, results};
use crate::progress::Progress;

/// Makes the files that the manifest lists. Says too what is missing of the events that it
/// requires.
pub(super) async fn publish(
    options: &Options,
    session_id: &str,
    captured: Captured,
    samples: Samples,
    spool: &Path,
    progress: &mut Progress,
) -> Result<(Summary, Option<Failure>), Error> {
    let uses_cuda = matches!(captured, Captured::Traced { uses_cuda: true, .. });
    let own = std::env::current_exe().map_err(io(Path::new("/proc/self/exe")))?;
    let steps = ChildRunner::new(own, options.profiler.tools().cloned(), Limits::default());
    let place = SandboxDir::make(spool.join(sandbox_dir::NAME), &steps.limits().users)?;
    let samples_file = spool.join(SAMPLES);
    let text = serde_json::to_vec(&samples).map_err(|error| Error::Io {
        path: samples_file.clone(),
        source: error.into(),
    })?;
    std::fs::write(&samples_file, text).map_err(io(&samples_file))?;
    let Raw {
        tools,
        inputs,
        reports,
        own,
        recorded,
    } = Raw::of(captured, &options.manifest.trace(), &place);
    let recipe = Recipe {
        tools: None,
        steps: tools,
        inputs,
        reports: reports.clone(),
        collected: Vec::new(),
        captured: recorded,
    };
    let spec = &options.manifest.spec;
    let wanted = Wanted {
        samples: Some(samples_file),
        session_id: Some(session_id.to_owned()),
        device: spec.transform.device,
        fleet: None,
    };
    let begins = |stage| {
        progress.stage(match stage {
            Stage::Import => "importing the capture",
            Stage::Export | Stage::Transform => "making the timeline",
        });
    };
    let made = products::run(&steps, &place, recipe, wanted, pending(), begins).await;
    let write = |name: &str, mut from: std::fs::File| {
        let to = options.output.join(name);
        let copied = std::fs::File::create(&to).and_then(|mut file| std::io::copy(&mut from, &mut file));
        copied.map(drop).map_err(io(&to))
    };
    let write_own = || {
        let mut files = own.iter();
        files.try_for_each(|(name, path)| write(name, std::fs::File::open(path).map_err(io(path))?))
    };
    let asks_for_raw = spec.outputs.contains(&Output::Raw);
    if made.is_ok() || asks_for_raw {
        results::clear(&options.output).map_err(|(path, source)| Error::Io { path, source })?;
    }
    let products = match made {
        Ok(products) => products,
        Err(source) if asks_for_raw => {
            let imported = !matches!(source, products::Error::Import(_));
            if imported && !reports.is_empty() {
                for name in &reports {
                    write(name, place.open(name).map_err(products::Error::from)?)?;
                }
            } else {
                write_own()?;
            }
            let folder = options.output.clone();
            return Err(Error::Kept { folder, source });
        }
        Err(error) => return Err(error.into()),
    };
    for (output, name) in products.artifacts() {
        if spec.outputs.contains(&output) {
            write(name, products.open(name)?)?;
        }
    }
    if asks_for_raw && reports.is_empty() {
        write_own()?;
    }
    let missing = products.verify(&spec.require, uses_cuda, &[Category::NvtxRange]).err();
    Ok((products.summary, missing))
}

/// What was recorded, as the children are given it.
struct Raw {
    /// What makes reports of it.
    tools: Vec<ToolJob>,
    /// What the timeline is made of.
    inputs: Vec<PathBuf>,
    /// Names of the reports that children make.
    reports: Vec<String>,
    /// Its own files, which no child makes, with the names under which they are published.
    own: Vec<(String, PathBuf)>,
    /// Categories that were recorded, with events or without.
    recorded: Vec<Category>,
}

impl Raw {
    fn of(captured: Captured, trace: &[TraceCategory], place: &SandboxDir) -> Self {
        let categories = |traced: &[TraceCategory]| traced.iter().flat_map(|one| one.records()).copied().collect();
        match captured {
            Captured::Reports(own) => Self {
                tools: Vec::new(),
                inputs: own.clone(),
                reports: Vec::new(),
                own: numbered(own, report_name),
                recorded: categories(trace),
            },
            Captured::Raw(raw) => {
                let (tools, inputs) = nsys_imports(raw.iter().cloned(), |name| place.at(name));
                Self {
                    tools,
                    inputs,
                    reports: (1..=raw.len()).map(report_name).collect(),
                    own: numbered(raw, stream_name),
                    recorded: categories(trace),
                }
            }
            Captured::Traced { drained, ring, .. } => {
                let ranges: &[TraceCategory] = if ring.is_some() { &[TraceCategory::Nvtx] } else { &[] };
                let files = [(CUDA_TRACE, Some(drained)), (RING, ring)];
                let own: Vec<(String, PathBuf)> = files
                    .into_iter()
                    .filter_map(|(name, path)| Some((name.to_owned(), path?)))
                    .collect();
                Self {
                    tools: Vec::new(),
                    inputs: own.iter().map(|(_, path)| path.clone()).collect(),
                    reports: Vec::new(),
                    own,
                    // What was recorded of CUDA the drained file says itself.
                    recorded: categories(ranges),
                }
            }
        }
    }
}

/// Files with the names that they have as the first, the second and so on.
fn numbered(files: Vec<PathBuf>, name: impl Fn(usize) -> String) -> Vec<(String, PathBuf)> {
    (1..).map(name).zip(files).collect()
}
