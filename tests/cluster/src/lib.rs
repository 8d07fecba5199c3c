//! A real Kubernetes cluster on this machine, or the one that KUBECONFIG names.
//!
//! Control plane and node programs are built from the Go modules that `tests/rig` pins; etcd, runc
//! and the CNI plugins come from Debian. There is no cluster DNS: Flopwatch's parts reach each
//! other through the API server's environment variables and by Service address. The control plane
//! runs on this machine itself, each node in namespaces and cgroups of its own: one machine carries
//! more than one node, and a node ends with its first process.

mod certificates;
mod cgroups;
mod containerd;
mod control_plane;
mod daemon;
mod down;
mod existing;
mod host;
mod image;
mod image_store;
mod install;
mod isolation;
mod layout;
mod lose;
mod network;
mod node;
mod reach;
mod status;
mod up;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use flopwatch_toolchain::cache::Cache;
use layout::{Layout, MAX_NODES};

pub use image::Image;
pub use install::InstallOptions;
pub use lose::NodeCommand;
pub use reach::Reach;

/// What to do with the cluster.
#[derive(Debug, Subcommand)]
pub enum ClusterCommand {
    /// Start the cluster and import the project's images; says so when it is up already.
    Up(UpOptions),
    /// Stop it and leave nothing: processes, mounts, links, firewall rules, cgroups, folders. Safe
    /// to run twice.
    Down,
    /// Tell what each part does.
    Status,
    /// Print the exports that let kubectl and helm reach it: eval "$(cargo xtask cluster env)".
    Env,
    /// Build the project's images without a cluster.
    Images(ImageOptions),
    /// Build the project's images again and import those that changed into the running cluster.
    Load(ImageOptions),
    /// Install the chart, or upgrade it, with the images that the cluster has, and wait until it is
    /// ready to profile.
    Install(InstallOptions),
    /// End the local cluster's API server and start it anew, and wait until it answers.
    RestartApi,
    /// Lose a node of the local cluster, and get it back.
    Node {
        /// What happens to it.
        #[command(subcommand)]
        command: NodeCommand,
    },
}

/// How a cluster is started.
#[derive(Debug, Args, Clone)]
pub struct UpOptions {
    /// Those that are built and imported.
    #[command(flatten)]
    pub images: ImageOptions,
    /// How many nodes. Each costs about 150 MB of memory; the images are shared.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=i64::from(MAX_NODES)))]
    pub nodes: u8,
    /// Leave a failed start as it is, to look into it; `down` cleans up.
    #[arg(long)]
    pub keep_failed: bool,
}

/// Which images; all but that of Nsight Compute where none is named.
#[derive(Debug, Args, Clone, Default)]
pub struct ImageOptions {
    /// Only these images (the pause image is always there).
    #[arg(long, value_delimiter = ',', value_enum)]
    images: Vec<Image>,
}

impl ImageOptions {
    /// Images that the tests of the system need.
    pub fn of_tests() -> Self {
        Self {
            images: Image::USUAL.into_iter().chain([Image::Ncu]).collect(),
        }
    }

    fn chosen(&self) -> Vec<Image> {
        if self.images.is_empty() {
            return Image::USUAL.to_vec();
        }
        let mut images = self.images.clone();
        images.push(Image::Pause);
        images.sort_unstable();
        images.dedup();
        images
    }
}

/// Runs one of the cluster's recipes.
pub fn run(cache: &Cache, use_kubeconfig: bool, command: &ClusterCommand) -> Result<()> {
    if use_kubeconfig {
        return existing::run(cache, command);
    }
    let layout = Layout::open(cache)?;
    match command {
        ClusterCommand::Up(options) => up::up(cache, &layout, options),
        ClusterCommand::Down => down::down(cache, &layout),
        ClusterCommand::Status => status::status(cache, &layout),
        ClusterCommand::Env => {
            reach::print(&reach::own(cache, &layout)?);
            Ok(())
        }
        ClusterCommand::Images(options) => up::images(cache, &options.chosen()).map(drop),
        ClusterCommand::Load(options) => up::load(cache, &layout, &options.chosen()),
        ClusterCommand::Install(options) => {
            status::wait_up(cache, &layout)?;
            install::install(&reach::own(cache, &layout)?, options)
        }
        ClusterCommand::RestartApi => up::restart_api(cache, &layout),
        ClusterCommand::Node { command } => lose::run(cache, &layout, command),
    }
}

/// Whether the local cluster runs and is well.
pub fn is_up(cache: &Cache) -> Result<bool> {
    status::is_up(cache, &Layout::open(cache)?)
}

/// How the tests reach the cluster.
pub fn reach(cache: &Cache, use_kubeconfig: bool) -> Result<Reach> {
    if use_kubeconfig {
        existing::reach(cache)
    } else {
        reach::own(cache, &Layout::open(cache)?)
    }
}

/// Builds the cluster's own programs, as `up` would.
pub fn build_programs(cache: &Cache) -> Result<()> {
    up::build_programs(cache)
}

fn require_root() -> Result<()> {
    if nix::unistd::geteuid().is_root() {
        return Ok(());
    }
    bail!(
        "the local cluster makes network links, mounts and containers: run it as root, or use your own cluster with --use-kubeconfig"
    );
}
