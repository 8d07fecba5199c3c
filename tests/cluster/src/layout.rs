//! Where the cluster keeps what: one folder, nothing outside it that `down` would not know of.

use super::containerd::Containerd;
use anyhow::{Context as _, Result, bail};
use flopwatch_toolchain::cache::{Cache, remove};
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

/// Marks a folder as a cluster's, the only kind that `down` removes.
const MARKER: &str = "flopwatch-cluster";
/// Says how many nodes the cluster has.
const NODE_COUNT: &str = "node-count";
/// A UNIX socket's path has at most 107 bytes; the longest below the folder is the node's
/// containerd socket for its shims.
const LONGEST_FOLDER: usize = 60;

/// The addresses of the cluster's network, all on the rig's own links.
pub(crate) const SERVICE_NETWORK: &str = "10.96.0.0/16";
pub(crate) const API_SERVICE_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 1);
pub(crate) const POD_NETWORK: &str = "10.244.0.0/16";
/// The bridge between this machine, where the control plane runs, and the nodes.
pub(crate) const NODE_BRIDGE: &str = "flopwatch0";
/// This machine's address on the bridge; the API server's.
pub(crate) const CONTROL_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 254);
/// Two cores carry no more; the addresses would.
pub(crate) const MAX_NODES: u8 = 4;
pub(crate) const API_PORT: u16 = 6443;
pub(crate) const ETCD_PORT: u16 = 2379;

/// The cluster's folder.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    root: PathBuf,
}

impl Layout {
    /// The folder `FLOPWATCH_CLUSTER_DIR`, or `cluster` in the cache.
    pub(crate) fn open(cache: &Cache) -> Result<Self> {
        let told = std::env::var_os("FLOPWATCH_CLUSTER_DIR")
            .filter(|value| !value.is_empty())
            .map(PathBuf::from);
        let root = std::path::absolute(told.unwrap_or_else(|| cache.root().join("cluster")))?;
        if root.as_os_str().len() > LONGEST_FOLDER {
            bail!(
                "{} is too long for the sockets in it: set FLOPWATCH_CLUSTER_DIR to a path of at most {LONGEST_FOLDER} bytes",
                root.display()
            );
        }
        Ok(Self { root })
    }

    /// Makes the folder, or fails when something else lives there.
    pub(crate) fn create(&self) -> Result<()> {
        if !self.exists() && self.root.exists() && fs::read_dir(&self.root)?.next().is_some() {
            bail!(
                "{} is not empty and no cluster's folder: set FLOPWATCH_CLUSTER_DIR elsewhere",
                self.root.display()
            );
        }
        fs::create_dir_all(&self.root).with_context(|| format!("cannot make {}", self.root.display()))?;
        fs::write(self.root.join(MARKER), "")?;
        for folder in ["pki", "etc", "run", "log"] {
            fs::create_dir_all(self.root.join(folder))?;
        }
        Ok(())
    }

    /// Removes the folder if it is a cluster's, the marker last: whatever cuts this off, the next
    /// attempt goes on.
    pub(crate) fn remove(&self) -> Result<()> {
        if !self.exists() {
            return Ok(());
        }
        for entry in fs::read_dir(&self.root)? {
            let entry = entry?;
            if entry.file_name() != MARKER {
                remove(&entry.path())?;
            }
        }
        remove(&self.root)
    }

    /// Whether a cluster's folder is there, of a running cluster or of one that was cut off.
    pub(crate) fn exists(&self) -> bool {
        self.root.join(MARKER).exists()
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Writes down how many nodes the cluster has.
    pub(crate) fn set_node_count(&self, count: u8) -> Result<()> {
        Ok(fs::write(self.root.join(NODE_COUNT), count.to_string())?)
    }

    /// How many nodes the cluster has; 0 where it did not come that far.
    fn node_count(&self) -> u8 {
        let text = fs::read_to_string(self.root.join(NODE_COUNT)).unwrap_or_default();
        text.parse().unwrap_or_default()
    }

    /// Certificates and keys.
    pub(crate) fn pki(&self, file: &str) -> PathBuf {
        self.root.join("pki").join(file)
    }

    /// Configuration files.
    pub(crate) fn etc(&self, file: &str) -> PathBuf {
        self.root.join("etc").join(file)
    }

    /// The kubeconfig of one of the cluster's users.
    pub(crate) fn kubeconfig(&self, user: &str) -> PathBuf {
        self.etc(&format!("{user}.kubeconfig"))
    }

    /// Process files.
    pub(crate) fn run(&self) -> PathBuf {
        self.root.join("run")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.root.join("log")
    }
}

/// A node: its name, addresses and folder.
#[derive(Debug, Clone)]
pub(crate) struct NodeLayout {
    /// Counted from 1.
    number: u8,
    pub(crate) name: String,
    pub(crate) address: Ipv4Addr,
    /// The pods' addresses on it.
    pub(crate) pod_subnet: String,
    /// This machine's end of the cable to the node.
    pub(crate) cable: String,
    root: PathBuf,
}

impl NodeLayout {
    /// The node with this number, counted from 1.
    pub(crate) fn new(layout: &Layout, number: u8) -> Self {
        let name = format!("node{number}");
        Self {
            number,
            address: Ipv4Addr::new(10, 77, 0, number),
            pod_subnet: format!("10.244.{number}.0/24"),
            cable: format!("flopwatch-{name}"),
            root: layout.root().join("nodes").join(&name),
            name,
        }
    }

    pub(crate) fn create(&self) -> Result<()> {
        for folder in [
            "cni/conf",
            "cni/data",
            "kubelet",
            "logs",
            "plugins",
            "containerd",
            "folders",
        ] {
            fs::create_dir_all(self.root.join(folder))?;
        }
        Ok(())
    }

    /// A file or folder of the node.
    pub(crate) fn path(&self, inside: &str) -> PathBuf {
        self.root.join(inside)
    }

    pub(crate) fn containerd(&self) -> Containerd {
        Containerd::new(self.path("containerd"))
    }

    /// Whether this machine reaches Services through it.
    pub(crate) fn is_gateway(&self) -> bool {
        self.number == 1
    }
}

/// The nodes of the cluster.
pub(crate) fn nodes(layout: &Layout) -> Vec<NodeLayout> {
    (1..=layout.node_count())
        .map(|number| NodeLayout::new(layout, number))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(root: &Path) -> Layout {
        Layout { root: root.to_owned() }
    }

    #[test]
    fn somebody_elses_folder_is_not_taken() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("thesis.txt"), "mine").unwrap();
        let layout = at(folder.path());
        assert!(layout.create().unwrap_err().to_string().contains("not empty"));
        assert!(!layout.exists());
        layout.remove().unwrap();
        assert!(folder.path().join("thesis.txt").exists(), "it was removed");
    }

    #[test]
    fn an_empty_folder_becomes_the_clusters_and_stays_it() {
        let folder = tempfile::tempdir().unwrap();
        let layout = at(folder.path());
        layout.create().unwrap();
        layout.create().unwrap();
        assert!(layout.exists());
        layout.remove().unwrap();
        layout.remove().unwrap();
        assert!(!folder.path().exists());
    }

    #[test]
    fn two_nodes_share_nothing() {
        let layout = at(Path::new("/c"));
        let (one, two) = (NodeLayout::new(&layout, 1), NodeLayout::new(&layout, 2));
        assert_ne!(one.address, two.address);
        assert_ne!(one.pod_subnet, two.pod_subnet);
        assert_ne!(one.cable, two.cable);
        assert_ne!(one.containerd().socket(), two.containerd().socket());
        assert!(one.cable.len() < 16, "longer than a link's name may be");
    }

    #[test]
    fn a_clusters_folder_remembers_its_nodes() {
        let folder = tempfile::tempdir().unwrap();
        let layout = at(folder.path());
        assert!(nodes(&layout).is_empty(), "nodes before there is a cluster");
        layout.create().unwrap();
        layout.set_node_count(2).unwrap();
        let names: Vec<String> = nodes(&layout).into_iter().map(|node| node.name).collect();
        assert_eq!(names, ["node1", "node2"]);
    }

    #[test]
    fn the_sockets_fit_below_the_longest_folder() {
        let layout = at(Path::new(&format!("/{}", "c".repeat(LONGEST_FOLDER - 1))));
        let socket = NodeLayout::new(&layout, 1).containerd().socket();
        assert!(format!("{}.ttrpc", socket.display()).len() <= 107);
    }
}
