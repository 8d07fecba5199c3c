//! The links and firewall rules of the cluster on this machine.

use super::layout::{NODE_BRIDGE, NodeLayout};
use crate::command::{Run, find_program};
use anyhow::{Context as _, Result, bail};
use std::collections::BTreeMap;

/// The chains of Kubernetes and of the CNI plugins. There is one Kubernetes per machine, so they are all the cluster's.
const CHAIN_PREFIXES: [&str; 2] = ["KUBE-", "CNI-"];
const COMMANDS: [&str; 2] = ["iptables", "ip6tables"];

/// Makes the bridge that carries the nodes' addresses.
pub(crate) fn create(nodes: &[NodeLayout]) -> Result<()> {
    if !link_exists(NODE_BRIDGE) {
        ip(&["link", "add", NODE_BRIDGE, "type", "bridge"])?;
    }
    for node in nodes {
        ip(&[
            "address",
            "replace",
            &format!("{}/24", node.address),
            "dev",
            NODE_BRIDGE,
        ])?;
    }
    ip(&["link", "set", NODE_BRIDGE, "up"])
}

/// Removes the cluster's links and rules.
pub(crate) fn remove(nodes: &[NodeLayout]) -> Result<()> {
    for link in nodes.iter().map(|node| node.pod_bridge.as_str()).chain([NODE_BRIDGE]) {
        if link_exists(link) {
            ip(&["link", "delete", link])?;
        }
    }
    for command in COMMANDS {
        remove_rules(command)?;
    }
    Ok(())
}

/// The chains that Kubernetes or CNI made on this machine.
pub(crate) fn foreign_chains() -> Result<Vec<String>> {
    let mut chains = Vec::new();
    for command in COMMANDS {
        for table in parse(&saved(command)?) {
            chains.extend(
                table
                    .chains
                    .into_iter()
                    .map(|chain| format!("{command} {} {chain}", table.name)),
            );
        }
    }
    Ok(chains)
}

fn ip(args: &[&str]) -> Result<()> {
    Run::new("ip").args(args).quiet()
}

fn link_exists(name: &str) -> bool {
    std::path::Path::new("/sys/class/net").join(name).exists()
}

fn saved(command: &str) -> Result<String> {
    let program = format!("{command}-save");
    if find_program(&program).is_none() {
        return Ok(String::new());
    }
    Run::new(&program)
        .output()
        .with_context(|| format!("cannot read the rules of {command}"))
}

fn remove_rules(command: &str) -> Result<()> {
    let removal = removal(&parse(&saved(command)?));
    if removal.is_empty() {
        return Ok(());
    }
    Run::new(format!("{command}-restore")).arg("--noflush").fed(&removal)?;
    let left = parse(&saved(command)?);
    if left.iter().any(|table| !table.chains.is_empty()) {
        bail!("{command} still has rules of the cluster: {left:?}");
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
    CHAIN_PREFIXES.iter().any(|prefix| chain.starts_with(prefix))
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

/// The input of `iptables-restore --noflush` that removes them and nothing else, each table at once.
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

    const SAVED: &str = "# Generated by iptables-save\n*nat\n:PREROUTING ACCEPT [0:0]\n:DOCKER - [0:0]\n:KUBE-SERVICES - [0:0]\n\
        :CNI-1234 - [0:0]\n-A PREROUTING -m comment --comment \"kubernetes service portals\" -j KUBE-SERVICES\n\
        -A PREROUTING -j DOCKER\n-A POSTROUTING -s 10.244.1.2/32 -m comment --comment \"name: \\\"x -j KUBE\\\"\" -j CNI-1234\n\
        -A KUBE-SERVICES -j RETURN\n-A CNI-1234 -j MASQUERADE\nCOMMIT\n*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -j ACCEPT\nCOMMIT\n";

    #[test]
    fn only_the_clusters_chains_and_the_ways_into_them_are_removed() {
        let removal = removal(&parse(SAVED));
        for expected in [
            "*nat\n",
            "-F KUBE-SERVICES\n",
            "-X KUBE-SERVICES\n",
            "-X CNI-1234\n",
            "portals\" -j KUBE-SERVICES\n",
        ] {
            assert!(removal.contains(expected), "{expected:?} is not in {removal}");
        }
        for foreign in ["DOCKER", "*filter", "INPUT", "-F PREROUTING"] {
            assert!(!removal.contains(foreign), "{foreign:?} is in {removal}");
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
