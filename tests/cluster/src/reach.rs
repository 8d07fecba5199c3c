//! How kubectl, helm and the tests reach a cluster.

use super::layout::Layout;
use anyhow::Result;
use flopwatch_toolchain::cache::Cache;
use flopwatch_toolchain::command::Run;
use flopwatch_toolchain::golang::{HELM, KUBERNETES};
use flopwatch_toolchain::progress::result;
use flopwatch_toolchain::project;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A kubeconfig, and the folders that the commands for it lie in.
#[derive(Debug, Clone)]
pub struct Reach {
    pub(crate) kubeconfig: String,
    pub(crate) programs: Vec<PathBuf>,
    /// These recipes, which install the chart, lose nodes of the local cluster and get them back.
    pub(crate) recipes: Option<PathBuf>,
    /// Whether it is the local cluster.
    pub(crate) local: bool,
}

/// Names the recipes to tests.
const RECIPES: &str = "FLOPWATCH_XTASK";
/// Tells recipes and tests that the cluster is another's.
const FOREIGN: &str = "FLOPWATCH_USE_KUBECONFIG";

impl Reach {
    /// The environment of a program that talks to the cluster.
    pub fn environment(&self) -> BTreeMap<String, String> {
        let mut path: Vec<String> = self
            .programs
            .iter()
            .map(|folder| folder.display().to_string())
            .collect();
        path.extend(std::env::var("PATH"));
        let mut vars = BTreeMap::from([
            ("KUBECONFIG".to_owned(), self.kubeconfig.clone()),
            ("PATH".to_owned(), path.join(":")),
        ]);
        let recipes = self.recipes.as_ref();
        vars.extend(recipes.map(|program| (RECIPES.to_owned(), program.display().to_string())));
        vars.extend((!self.local).then(|| (FOREIGN.to_owned(), "1".to_owned())));
        vars
    }

    /// `kubectl` for this cluster.
    pub(crate) fn kubectl(&self) -> Run {
        self.program("kubectl")
    }

    /// `helm` for this cluster.
    pub(crate) fn helm(&self) -> Run {
        self.program("helm")
    }

    fn program(&self, name: &str) -> Run {
        let own = self
            .programs
            .iter()
            .map(|folder| folder.join(name))
            .find(|path| path.exists());
        Run::new(own.unwrap_or_else(|| name.into())).envs(self.environment())
    }
}

/// The way to the local cluster.
pub(crate) fn own(cache: &Cache, layout: &Layout) -> Result<Reach> {
    Ok(Reach {
        kubeconfig: layout.kubeconfig("admin").display().to_string(),
        programs: vec![KUBERNETES.build(cache)?, HELM.build(cache)?, project::built()?],
        recipes: Some(project::own_program()?),
        local: true,
    })
}

/// The way to the local cluster with the commands that are built already.
pub(crate) fn own_so_far(cache: &Cache, layout: &Layout) -> Result<Reach> {
    Ok(Reach {
        kubeconfig: layout.kubeconfig("admin").display().to_string(),
        programs: KUBERNETES.built(cache)?.into_iter().chain(HELM.built(cache)?).collect(),
        recipes: None,
        local: true,
    })
}

/// Prints the exports for a shell.
pub(crate) fn print(reach: &Reach) {
    let folders: Vec<String> = reach
        .programs
        .iter()
        .map(|folder| folder.display().to_string())
        .collect();
    let recipes = reach.recipes.as_ref().map(|program| program.display().to_string());
    result(exports(&reach.kubeconfig, &folders, recipes.as_deref(), reach.local));
}

fn exports(kubeconfig: &str, folders: &[String], recipes: Option<&str>, local: bool) -> String {
    let mut lines = vec![format!("export KUBECONFIG={}", quote(kubeconfig))];
    if !folders.is_empty() {
        lines.push(format!("export PATH={}:\"$PATH\"", quote(&folders.join(":"))));
    }
    lines.extend(recipes.map(|program| format!("export {RECIPES}={}", quote(program))));
    lines.extend((!local).then(|| format!("export {FOREIGN}=1")));
    lines.join("\n")
}

/// A word that a shell takes as it stands.
pub(crate) fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests that start processes.
    mod crate_tests {
        use super::*;

        #[test]
        fn a_shell_gets_back_what_was_exported() {
            let strange = "/a b/it's $HOME";
            let script = format!(
                "{}\nprintf '%s|%s|%s' \"$KUBECONFIG\" \"$PATH\" \"$FLOPWATCH_XTASK\"",
                exports(strange, &["/x y".to_owned()], Some("/z"), true)
            );
            let message = Run::new("/bin/sh")
                .args(["-c", &script])
                .env("PATH", "/bin")
                .output()
                .unwrap();
            assert_eq!(message, format!("{strange}|/x y:/bin|/z"));
        }
    }

    #[test]
    fn nothing_is_added_to_the_path_where_nothing_was_built() {
        assert_eq!(exports("/k", &[], None, true), "export KUBECONFIG='/k'");
    }

    #[test]
    fn another_cluster_is_told_apart() {
        let message = exports("/k", &[], None, false);
        assert_eq!(message, "export KUBECONFIG='/k'\nexport FLOPWATCH_USE_KUBECONFIG=1");
    }
}
