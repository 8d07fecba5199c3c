//! Starting the cluster, and bringing images into it.

use super::daemon::Daemon;
use super::layout::{Layout, NodeLayout, nodes};
use super::{
    UpOptions, certificates, cgroups, containerd, control_plane, down, host, image_store, network, node, reach,
    require_root, status,
};
use crate::image::{self, BuiltImage, Image};
use anyhow::{Context as _, Result, bail};
use flopwatch_toolchain::cache::Cache;
use flopwatch_toolchain::command::wait_until;
use flopwatch_toolchain::debian;
use flopwatch_toolchain::golang::{CONTAINERD, HELM, KUBERNETES};
use flopwatch_toolchain::progress::{human, say, step};
use nix::sys::statvfs::statvfs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Starts the cluster, with everything it needs built first.
pub(crate) fn up(cache: &Cache, layout: &Layout, options: &UpOptions) -> Result<()> {
    require_root()?;
    let begin = Instant::now();
    let _lock = cache.lock("cluster")?;
    if status::is_up(cache, layout)? {
        say("the cluster is up already; new images come in with `cluster load`");
        return Ok(());
    }
    if layout.exists() {
        say("a cluster was cut off; clearing it away");
        down::clear(layout)?;
    }
    debian::install(debian::CLUSTER)?;
    check_machine()?;
    check_room(cache.root())?;
    let images = prepare(cache, &options.images.chosen())?;
    say(format_args!("all is built after {}", human(begin.elapsed())));

    // From here on there is something to clear away.
    layout.create()?;
    host::remember(layout)?;
    layout.set_node_count(options.nodes)?;
    if let Err(error) = start(cache, layout, &images) {
        if options.keep_failed {
            say(format_args!(
                "left as it is: {}; `cargo xtask cluster down` cleans up",
                layout.root().display()
            ));
        } else {
            say("the start failed; cleaning up");
            flopwatch_toolchain::command::acknowledge_interrupt();
            if let Err(after) = down::clear(layout) {
                say(format_args!("the clean-up failed too: {after:#}"));
            }
        }
        return Err(error.context("the cluster did not come up"));
    }
    say(format_args!(
        "the cluster is up after {}; reach it with: eval \"$(cargo xtask cluster env)\"",
        human(begin.elapsed())
    ));
    Ok(())
}

/// Builds images without a cluster.
pub(crate) fn images(cache: &Cache, images: &[Image]) -> Result<Vec<BuiltImage>> {
    let built = build_images(cache, images)?;
    for image in &built {
        say(format_args!("{}: {}", image.image.reference(), image.archive.display()));
    }
    Ok(built)
}

/// Builds the images again and imports those that changed.
pub(crate) fn load(cache: &Cache, layout: &Layout, images: &[Image]) -> Result<()> {
    require_root()?;
    status::wait_up(cache, layout)?;
    let built = self::images(cache, images)?;
    let _lock = cache.lock("cluster")?;
    let programs = CONTAINERD.build(cache)?;
    for node in nodes(layout) {
        let new = step(&format!("importing images into {}", node.name), || {
            containerd::import(&programs, &node.containerd(), &built)
        })?;
        if new.is_empty() {
            say(format_args!("{} has these images already", node.name));
        } else {
            say(format_args!(
                "{} got {}; pods started from now on run them",
                node.name,
                new.join(", ")
            ));
        }
    }
    Ok(())
}

/// Ends the API server and starts it anew.
pub(crate) fn restart_api(cache: &Cache, layout: &Layout) -> Result<()> {
    require_root()?;
    let _lock = cache.lock("cluster")?;
    if !layout.exists() {
        bail!("the cluster is not up: cargo xtask cluster up");
    }
    control_plane::restart_api(layout, &KUBERNETES.build(cache)?, &reach::own(cache, layout)?)
}

/// Builds control plane, node programs, kubectl and helm.
pub(crate) fn build_programs(cache: &Cache) -> Result<()> {
    KUBERNETES.build(cache)?;
    CONTAINERD.build(cache)?;
    HELM.build(cache).map(drop)
}

/// An error when the machine carries a cluster already, or somebody has its ports.
fn check_machine() -> Result<()> {
    if cgroups::exist() {
        bail!(
            "another local cluster runs here (its nodes' cgroups exist): take it down with the FLOPWATCH_CLUSTER_DIR or FLOPWATCH_CACHE that it was started with"
        );
    }
    control_plane::check_ports()
}

/// Refuses a disk that pods would be evicted from: their kubelet does that below a hundredth of it
/// (`nodefs.available`).
fn check_room(folder: &Path) -> Result<()> {
    let facts = statvfs(folder).with_context(|| format!("looking at the disk of {}", folder.display()))?;
    let free = facts.blocks_available().saturating_mul(facts.fragment_size());
    let whole = facts.blocks().saturating_mul(facts.fragment_size());
    let needed = room(whole);
    if free < needed {
        bail!(
            "the disk of {} has {} MiB free and a cluster needs {} MiB, or its pods are evicted: free some space",
            folder.display(),
            free >> 20,
            needed >> 20
        );
    }
    Ok(())
}

/// Free bytes that a cluster needs on a disk of so many.
const fn room(whole: u64) -> u64 {
    // Images for two nodes, their containers, and what tests store take 4 GiB.
    whole / 100 + (6 << 30)
}

/// Builds all that the start needs. Go, cargo and the downloads wait for different things, so they
/// run side by side.
fn prepare(cache: &Cache, images: &[Image]) -> Result<Vec<BuiltImage>> {
    std::thread::scope(|scope| {
        let programs = scope.spawn(|| build_programs(cache));
        let built = build_images(cache, images).context("building the images");
        join(programs).context("building the cluster's programs")?;
        built
    })
}

fn build_images(cache: &Cache, images: &[Image]) -> Result<Vec<BuiltImage>> {
    let binaries = std::thread::scope(|scope| {
        let pieces = scope.spawn(|| image::prepare(cache, images));
        let binaries = image::compile(cache, images);
        join(pieces)?;
        binaries
    })?;
    image::build(cache, images, &binaries)
}

fn join<T>(thread: std::thread::ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    thread.join().unwrap_or_else(|_| bail!("a thread of the recipe died"))
}

fn start(cache: &Cache, layout: &Layout, images: &[BuiltImage]) -> Result<()> {
    let nodes = nodes(layout);
    nodes.iter().try_for_each(NodeLayout::create)?;
    network::create(&nodes).context("making the network")?;
    certificates::create(layout, &nodes).context("making the certificates")?;
    let programs = KUBERNETES.build(cache)?;
    let runtime = CONTAINERD.build(cache)?;
    let reach = reach::own(cache, layout)?;
    std::thread::scope(|scope| {
        // Unpacking fills the disk's queue while the API server waits for the processor.
        let containers = scope.spawn(|| {
            image_store::update(cache, layout, &runtime, images)?;
            nodes.iter().try_for_each(|node| {
                image_store::copy(cache, node)?;
                node::found(cache, layout, node, &nodes)?;
                node::start_containerd(layout, &runtime, node)
            })
        });
        let api = control_plane::start_api(layout, &programs, &reach)
            .and_then(|()| control_plane::start_controllers(layout, &programs))
            .and_then(|()| admit_proxy(&reach));
        join(containers)?;
        api
    })?;
    step("starting the nodes", || {
        nodes
            .iter()
            .try_for_each(|node| node::start_kubelet(layout, &programs, node))?;
        nodes.iter().try_for_each(|node| node::wait_ready(cache, layout, node))
    })?;
    wait_account(layout, &reach)
}

/// kube-proxy's identity is not one of the API server's built-in bindings.
fn admit_proxy(reach: &reach::Reach) -> Result<()> {
    let binding = ["create", "clusterrolebinding", "flopwatch-kube-proxy"];
    let kubectl = reach
        .kubectl()
        .args(binding)
        .args(["--clusterrole=system:node-proxier", "--user=system:kube-proxy"]);
    kubectl.quiet().context("letting kube-proxy in")
}

/// A pod cannot be made before its namespace has the default service account.
fn wait_account(layout: &Layout, reach: &reach::Reach) -> Result<()> {
    let manager = Daemon::new(layout, "kube-controller-manager");
    let made = wait_until(Duration::from_mins(1), || {
        manager.must_live()?;
        Ok(reach
            .kubectl()
            .args(["-n", "default", "get", "serviceaccount", "default"])
            .quiet()
            .is_ok())
    })?;
    if made {
        Ok(())
    } else {
        bail!("no service accounts are made\n{}", manager.report())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_needs_what_kubelets_leave_alone_and_room_for_the_cluster() {
        assert_eq!(room(100 << 30), 7 << 30);
        let missing = check_room(Path::new("/nowhere/at/all")).unwrap_err();
        assert!(format!("{missing:#}").contains("/nowhere/at/all"), "{missing:#}");
    }
}
