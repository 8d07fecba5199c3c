//! The project's images, made here without a container engine and without a registry.

mod archive;
#[cfg(test)]
mod containerfiles;
mod layer;
mod rootfs;
mod simulated_gpu;

use anyhow::{Context as _, Result};
use archive::{Archive, ImageConfig};
use flopwatch_toolchain::cache::{Cache, key, remove};
use flopwatch_toolchain::command::Run;
use flopwatch_toolchain::progress::{human, say};
use flopwatch_toolchain::{cupti, golang, kernels, ncu, nsys, project};
use layer::{File, Layer};
use rootfs::Rootfs;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// One image of the project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Image {
    /// What holds a pod's namespaces; every cluster needs it.
    Pause,
    /// Image of the operator.
    Operator,
    /// The agent and the launcher.
    Agent,
    /// The tools that a prepared pod gets: Nsight Systems, nothing else.
    Nsys,
    /// The sample workload, a shell for tests, and a simulated GPU.
    Workload,
    /// Nsight Compute, and a double of it for pods of tests.
    Ncu,
}

impl Image {
    /// What a user of the local cluster needs.
    pub(crate) const USUAL: [Self; 5] = [Self::Pause, Self::Operator, Self::Agent, Self::Nsys, Self::Workload];

    fn name(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Operator => "operator",
            Self::Agent => "agent",
            Self::Nsys => "nsys",
            Self::Workload => "workload",
            Self::Ncu => "ncu",
        }
    }

    /// The name that pods use.
    pub(crate) fn reference(self) -> String {
        format!("localhost/flopwatch/{}:dev", self.name())
    }

    /// The package whose binaries it holds.
    fn package(self) -> Option<&'static str> {
        match self {
            Self::Operator => Some("flopwatch-operator"),
            Self::Agent => Some("flopwatch-agent"),
            Self::Workload => Some("flopwatch-sample-workload"),
            Self::Pause | Self::Nsys | Self::Ncu => None,
        }
    }

    /// The root file system it stands on.
    fn rootfs(self) -> Option<Rootfs> {
        match self {
            Self::Operator | Self::Workload => Some(Rootfs::Base),
            Self::Agent => Some(Rootfs::Importer),
            Self::Pause | Self::Nsys | Self::Ncu => None,
        }
    }

    fn config(self) -> ImageConfig {
        let (entrypoint, user): (&[&str], &str) = match self {
            Self::Pause => (&["/pause"], "65535:65535"),
            Self::Operator => (&["/usr/local/bin/flopwatch-operator"], "65532:65532"),
            Self::Agent => (&["/usr/local/bin/flopwatch-agent"], ""),
            Self::Nsys | Self::Ncu => (&[], ""),
            Self::Workload => (&["/usr/local/bin/flopwatch-sample-workload"], ""),
        };
        ImageConfig {
            entrypoint: entrypoint.iter().map(|&word| word.to_owned()).collect(),
            user: user.to_owned(),
        }
    }
}

/// An image that lies in the cache, ready to be imported.
#[derive(Debug, Clone)]
pub(crate) struct BuiltImage {
    pub(crate) image: Image,
    pub(crate) archive: PathBuf,
}

impl BuiltImage {
    /// What tells this build of the image from others.
    pub(crate) fn id(&self) -> String {
        self.archive
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default()
    }
}

/// The binaries that go into images, each path by its name.
pub(crate) type Binaries = BTreeMap<String, PathBuf>;

/// Compiles what goes into the images.
pub(crate) fn compile(cache: &Cache, images: &[Image]) -> Result<Binaries> {
    let packages: Vec<&str> = images.iter().filter_map(|image| image.package()).collect();
    if packages.is_empty() {
        return Ok(Binaries::new());
    }
    say(format_args!("compiling {}", packages.join(", ")));
    let begin = Instant::now();
    let built = project::build_beside_tests(cache, &packages)?;
    let mut binaries = stripped(built.programs, &packages)?;
    if images.contains(&Image::Agent) {
        binaries.extend(project::build_static("flopwatch-launcher")?);
        let tools = tools_folder(&binaries)?;
        binaries.insert(TOOLS.to_owned(), tools);
    }
    if images.contains(&Image::Workload) {
        let folder = simulated_gpu::compile(&project::target_directory()?.join("simulated-gpu"))?;
        binaries.insert(simulated_gpu::PLACE.to_owned(), folder);
    }
    say(format_args!("compiled in {}", human(begin.elapsed())));
    Ok(binaries)
}

/// Where pods find the launcher in the agent's image.
const TOOLS: &str = "usr/lib/flopwatch/tools";

/// What the launcher installs into a pod's volume, and a folder to mount the profiler at.
fn tools_folder(binaries: &Binaries) -> Result<PathBuf> {
    let launcher = binaries.get("flopwatch-launcher").context("cargo built no launcher")?;
    let folder = project::target_directory()?.join("tools");
    fs::create_dir_all(folder.join("target-linux-x64"))?;
    Run::new(launcher).arg("install").arg(&folder).quiet()?;
    Ok(folder)
}

/// Copies of programs without their symbols, which are most of what a program of the tests' profile
/// weighs.
fn stripped(programs: Binaries, wanted: &[&str]) -> Result<Binaries> {
    let folder = project::target_directory()?.join("stripped");
    fs::create_dir_all(&folder)?;
    let wanted = programs.into_iter().filter(|(name, _)| wanted.contains(&name.as_str()));
    let copies = wanted.map(|(name, program)| {
        let copy = folder.join(&name);
        Run::new("strip").arg("-o").arg(&copy).arg(program).quiet()?;
        Ok((name, copy))
    });
    copies.collect()
}

/// Builds the images whose inputs changed.
pub(crate) fn build(cache: &Cache, images: &[Image], binaries: &Binaries) -> Result<Vec<BuiltImage>> {
    images.iter().map(|&image| build_one(cache, image, binaries)).collect()
}

/// Builds what images take long for and what needs no compiler: the root file systems and the
/// profiler.
pub(crate) fn prepare(cache: &Cache, images: &[Image]) -> Result<()> {
    if images.contains(&Image::Nsys) {
        nsys::ensure(cache)?;
    }
    if images.contains(&Image::Ncu) {
        ncu::ensure(cache)?;
    }
    if images.contains(&Image::Agent) {
        cupti::ensure(cache)?;
    }
    images
        .iter()
        .filter_map(|image| image.rootfs())
        .try_for_each(|rootfs| rootfs.ensure(cache).map(drop))
}

fn build_one(cache: &Cache, image: Image, binaries: &Binaries) -> Result<BuiltImage> {
    let rootfs = image.rootfs().map(|rootfs| rootfs.ensure(cache)).transpose()?;
    let files = files(cache, image, binaries)?;
    let config = image.config();
    let layer = Layer::new(files)?;
    let base = rootfs
        .as_deref()
        .map(|path| path.display().to_string())
        .unwrap_or_default();
    let pins = [
        layer.fingerprint()?,
        base,
        config.to_json(&[]).to_string(),
        archive::LAYOUT.to_owned(),
    ];
    let folder = cache.root().join("images");
    fs::create_dir_all(&folder)?;
    let name = format!("{}-{}.tar", image.name(), key(&pins.each_ref().map(String::as_str)));
    let built = BuiltImage {
        image,
        archive: folder.join(&name),
    };
    let _lock = cache.lock(&format!("image-{}", image.name()))?;
    if built.archive.exists() {
        return Ok(built);
    }
    let begin = Instant::now();
    let own = folder.join(format!(".{}.layer", image.name()));
    let part = folder.join(format!(".{}.part", image.name()));
    layer.write(&own)?;
    let layers: Vec<&Path> = rootfs.as_deref().into_iter().chain([own.as_path()]).collect();
    Archive {
        reference: &image.reference(),
        config: &config,
        layers: &layers,
    }
    .write(&part)?;
    remove(&own)?;
    fs::rename(&part, &built.archive)?;
    forget_others(&folder, image, &name)?;
    say(format_args!("made {} in {}", image.reference(), human(begin.elapsed())));
    Ok(built)
}

fn files(cache: &Cache, image: Image, binaries: &Binaries) -> Result<Vec<File>> {
    let binary = |name: &str| {
        let path = binaries
            .get(name)
            .with_context(|| format!("cargo built no binary {name}"))?;
        Ok::<_, anyhow::Error>(File::new(path, format!("usr/local/bin/{name}")))
    };
    Ok(match image {
        Image::Pause => vec![File::new(golang::PAUSE.build(cache)?.join("pause"), "pause")],
        Image::Operator => vec![binary("flopwatch-operator")?],
        Image::Agent => {
            let mut files = vec![
                binary("flopwatch-agent")?,
                binary("flopwatch-launcher")?,
                File::new(binaries.get(TOOLS).context("no launcher was installed")?, TOOLS),
                File::new(
                    kernels::build(cache)?,
                    format!("usr/lib/flopwatch/{}", kernels::FILE_NAME),
                ),
            ];
            let cupti = cupti::files(cache)?.into_iter();
            files.extend(cupti.map(|(path, name)| File::new(path, format!("{TOOLS}/{}/{name}", cupti::FOLDER_NAME))));
            files
        }
        Image::Workload => {
            let gpu = binaries.get(simulated_gpu::PLACE);
            let gpu = gpu.context("no simulated GPU was compiled")?;
            vec![
                binary("flopwatch-sample-workload")?,
                File::new(gpu, simulated_gpu::PLACE),
            ]
        }
        Image::Nsys => {
            let nsys = nsys::ensure(cache)?;
            let parts = nsys.host_parts()?.own.into_iter();
            // The programs refuse to run when these two folders have other names.
            parts
                .map(|(name, path)| File::new(path, format!("opt/nsys/host-linux-x64/{name}")))
                .chain([File::new(nsys.target, "opt/nsys/target-linux-x64")])
                .collect()
        }
        Image::Ncu => {
            let real = ncu::ensure(cache)?;
            let double = project::root()?.join("tests/rig/ncu-double/ncu");
            vec![
                File::new(double, format!("opt/rig/{}", ncu::PROGRAM)),
                File::new(&real.sample, "opt/rig/sample.ncu-rep"),
                File::new(real.target, "opt/rig/real/target"),
                File::new(real.sections, "opt/rig/real/sections"),
            ]
        }
    })
}

fn forget_others(folder: &Path, image: Image, keep: &str) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name != keep
            && name
                .strip_prefix(image.name())
                .is_some_and(|rest| rest.starts_with('-'))
        {
            remove(&entry.path())?;
        }
    }
    Ok(())
}
