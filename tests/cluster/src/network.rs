//! The cables between this machine and the nodes, and the ways through them.
//!
//! The nodes have network namespaces of their own, so what kube-proxy and the CNI plugins do to
//! links and firewalls stays there and goes with them. This machine gets a bridge, a cable to each
//! node, and routes to pods and Services; like the machines of a control plane without pods, it
//! reaches Services through a node.

use super::isolation;
use super::layout::{CONTROL_ADDRESS, Layout, NODE_BRIDGE, NodeLayout, SERVICE_NETWORK};
use anyhow::{Context as _, Result, bail};
use flopwatch_toolchain::command::{Run, find_program};
use std::collections::BTreeMap;

/// The cluster's chains on this machine.
const CHAIN_PREFIX: &str = "FLOPWATCH-";
const IPTABLES: &str = "iptables";
/// The nodes' end of a cable.
const NODE_LINK: &str = "eth0";

/// Makes the bridge.
pub(crate) fn create(nodes: &[NodeLayout]) -> Result<()> {
    if !link_exists(NODE_BRIDGE) {
        ip(&["link", "add", NODE_BRIDGE, "type", "bridge"])?;
    }
    let address = format!("{CONTROL_ADDRESS}/24");
    ip(&["address", "replace", &address, "dev", NODE_BRIDGE])?;
    ip(&["link", "set", NODE_BRIDGE, "up"])?;
    if nodes.len() > 1 && refuses_to_forward(&saved()?) {
        Run::new(format!("{IPTABLES}-restore"))
            .arg("--noflush")
            .fed(&permission())?;
    }
    Ok(())
}

/// Puts the cable into a node, and makes the ways to its pods and, on it, to the others'.
pub(crate) fn attach(layout: &Layout, node: &NodeLayout, nodes: &[NodeLayout]) -> Result<()> {
    let pid = isolation::pid(layout, node)?.to_string();
    if !link_exists(&node.cable) {
        let peer = ["type", "veth", "peer", "name", NODE_LINK, "netns", &pid];
        ip(&[["link", "add", &node.cable].as_slice(), &peer].concat())?;
    }
    ip(&["link", "set", &node.cable, "master", NODE_BRIDGE, "up"])?;
    let network = format!("--net=/proc/{pid}/ns/net");
    let inside = |args: &[&str]| Run::new("nsenter").args([network.as_str(), "ip"]).args(args).quiet();
    let address = format!("{}/24", node.address);
    inside(&["address", "replace", &address, "dev", NODE_LINK])?;
    inside(&["link", "set", NODE_LINK, "up"])?;
    inside(&["route", "replace", "default", "via", &CONTROL_ADDRESS.to_string()])?;
    for other in nodes.iter().filter(|other| other.name != node.name) {
        inside(&["route", "replace", &other.pod_subnet, "via", &other.address.to_string()])?;
    }
    let way = node.address.to_string();
    ip(&["route", "replace", &node.pod_subnet, "via", &way])?;
    if node.is_gateway() {
        ip(&["route", "replace", SERVICE_NETWORK, "via", &way])?;
    }
    Ok(())
}

/// Pulls a node's cable, or puts it back.
pub(crate) fn connect(node: &NodeLayout, connected: bool) -> Result<()> {
    let state = if connected { "up" } else { "down" };
    ip(&["link", "set", &node.cable, state])
}

/// Whether a node's cable is in.
pub(crate) fn is_connected(node: &NodeLayout) -> bool {
    let state = std::fs::read_to_string(format!("/sys/class/net/{}/operstate", node.cable));
    state.is_ok_and(|state| state.trim() == "up")
}

/// Removes the cluster's links and rules; the routes go with the links.
pub(crate) fn remove(nodes: &[NodeLayout]) -> Result<()> {
    for link in nodes.iter().map(|node| node.cable.as_str()).chain([NODE_BRIDGE]) {
        // A cable also goes by itself, a moment after the node at its other end.
        if link_exists(link) && ip(&["link", "delete", link]).is_err() && link_exists(link) {
            bail!("cannot remove the link {link}");
        }
    }
    remove_rules()
}

/// Whether this machine's firewall might stop packets between the nodes: some kernels show it
/// bridged packets too.
fn refuses_to_forward(saved: &str) -> bool {
    let mut in_filter = false;
    saved.lines().any(|line| {
        if line.starts_with('*') {
            in_filter = line == "*filter";
        }
        let policy = line.starts_with(":FORWARD ") && !line.starts_with(":FORWARD ACCEPT ");
        in_filter && (policy || line.starts_with("-A FORWARD "))
    })
}

/// The input of `iptables-restore --noflush` that lets the nodes reach each other.
fn permission() -> String {
    let chain = format!("{CHAIN_PREFIX}NODES");
    format!(
        "*filter\n:{chain} - [0:0]\n-A {chain} -i {NODE_BRIDGE} -o {NODE_BRIDGE} -j ACCEPT\n-I FORWARD -j {chain}\nCOMMIT\n"
    )
}

fn ip(args: &[&str]) -> Result<()> {
    Run::new("ip").args(args).quiet()
}

fn link_exists(name: &str) -> bool {
    std::path::Path::new("/sys/class/net").join(name).exists()
}

fn saved() -> Result<String> {
    let program = format!("{IPTABLES}-save");
    if find_program(&program).is_none() {
        return Ok(String::new());
    }
    Run::new(&program).output().context("cannot read the firewall's rules")
}

fn remove_rules() -> Result<()> {
    let removal = removal(&parse(&saved()?));
    if removal.is_empty() {
        return Ok(());
    }
    Run::new(format!("{IPTABLES}-restore")).arg("--noflush").fed(&removal)?;
    let left = parse(&saved()?);
    if left.iter().any(|table| !table.chains.is_empty()) {
        bail!("the firewall still has rules of the cluster: {left:?}");
    }
    Ok(())
}

/// What of one table is the cluster's.
#[derive(Debug, Default, PartialEq, Eq)]
struct Table {
    name: String,
    chains: Vec<String>,
    /// Rules in other chains that lead into the cluster's, as `iptables-save` writes them.
    jumps: Vec<String>,
}

fn is_ours(chain: &str) -> bool {
    chain.starts_with(CHAIN_PREFIX)
}

/// Where a rule leads. A comment may hold the same words, but always stands before the target.
fn target<'a>(words: impl Iterator<Item = &'a str>) -> &'a str {
    let words: Vec<&str> = words.collect();
    let option = words.iter().rposition(|word| matches!(*word, "-j" | "-g"));
    option
        .and_then(|option| words.get(option + 1))
        .copied()
        .unwrap_or_default()
}

fn parse(saved: &str) -> Vec<Table> {
    let mut tables: BTreeMap<String, Table> = BTreeMap::new();
    let mut name = String::new();
    for line in saved.lines() {
        if let Some(table) = line.strip_prefix('*') {
            table.clone_into(&mut name);
            continue;
        }
        let table = || Table {
            name: name.clone(),
            ..Table::default()
        };
        if let Some(chain) = line.strip_prefix(':').and_then(|rest| rest.split(' ').next()) {
            if is_ours(chain) {
                tables
                    .entry(name.clone())
                    .or_insert_with(table)
                    .chains
                    .push(chain.to_owned());
            }
        } else if let Some(rule) = line.strip_prefix("-A ") {
            let mut words = rule.split(' ');
            let chain = words.next().unwrap_or_default();
            let target = target(words);
            if !is_ours(chain) && is_ours(target) {
                tables
                    .entry(name.clone())
                    .or_insert_with(table)
                    .jumps
                    .push(rule.to_owned());
            }
        }
    }
    tables.into_values().collect()
}

/// The input of `iptables-restore --noflush` that removes them and nothing else, each table at
/// once.
fn removal(tables: &[Table]) -> String {
    let mut lines = Vec::new();
    for table in tables {
        lines.push(format!("*{}", table.name));
        lines.extend(table.jumps.iter().map(|rule| format!("-D {rule}")));
        lines.extend(table.chains.iter().map(|chain| format!("-F {chain}")));
        lines.extend(table.chains.iter().map(|chain| format!("-X {chain}")));
        lines.push("COMMIT\n".to_owned());
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAVED: &str = "# Generated by iptables-save\n*nat\n:PREROUTING ACCEPT [0:0]\n:KUBE-SERVICES - [0:0]\n\
        -A PREROUTING -j KUBE-SERVICES\nCOMMIT\n*filter\n:INPUT ACCEPT [0:0]\n:FORWARD DROP [0:0]\n:DOCKER - [0:0]\n\
        :FLOPWATCH-NODES - [0:0]\n-A INPUT -j ACCEPT\n-A FORWARD -m comment --comment \"a -j b\" -j FLOPWATCH-NODES\n\
        -A FORWARD -m comment --comment \"x -j FLOPWATCH-NODES\" -j DOCKER\n\
        -A FLOPWATCH-NODES -i flopwatch0 -o flopwatch0 -j ACCEPT\nCOMMIT\n";

    #[test]
    fn only_the_clusters_chains_and_the_ways_into_them_are_removed() {
        let removal = removal(&parse(SAVED));
        for expected in [
            "*filter\n",
            "-F FLOPWATCH-NODES\n",
            "-X FLOPWATCH-NODES\n",
            "-D FORWARD -m comment --comment \"a -j b\" -j FLOPWATCH-NODES\n",
        ] {
            assert!(removal.contains(expected), "{expected:?} is not in {removal}");
        }
        for foreign in ["DOCKER", "*nat", "INPUT", "KUBE", "-F FORWARD"] {
            assert!(!removal.contains(foreign), "{foreign:?} is in {removal}");
        }
    }

    #[test]
    fn what_is_let_through_is_also_taken_back() {
        let tables = parse(&permission().replace("-I FORWARD", "-A FORWARD"));
        let removal = removal(&tables);
        for expected in ["-D FORWARD -j FLOPWATCH-NODES", "-X FLOPWATCH-NODES"] {
            assert!(removal.contains(expected), "{expected:?} is not in {removal}");
        }
    }

    #[test]
    fn a_firewall_that_forwards_all_is_left_alone() {
        assert!(refuses_to_forward(SAVED));
        for open in [
            "",
            "*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n",
            "*nat\n-A FORWARD -j X\nCOMMIT\n",
        ] {
            assert!(!refuses_to_forward(open), "{open:?}");
        }
    }

    #[test]
    fn a_machine_without_such_rules_gets_no_change() {
        assert_eq!(
            removal(&parse("*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -j ACCEPT\nCOMMIT\n")),
            ""
        );
    }
}
