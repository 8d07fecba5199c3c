//! How kubectl, helm and the tests reach a cluster.

use super::layout::Layout;
use crate::cache::Cache;
use crate::command::Run;
use crate::golang::{HELM, KUBERNETES};
use crate::progress::result;
use anyhow::Result;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A kubeconfig, and the folders that the commands for it lie in.
#[derive(Debug, Clone)]
pub(crate) struct Reach {
    pub(crate) kubeconfig: String,
    pub(crate) programs: Vec<PathBuf>,
}

impl Reach {
    /// The environment of a program that talks to the cluster.
    pub(crate) fn environment(&self) -> BTreeMap<String, String> {
        let mut path: Vec<String> = self
            .programs
            .iter()
            .map(|folder| folder.display().to_string())
            .collect();
        path.extend(std::env::var("PATH"));
        BTreeMap::from([
            ("KUBECONFIG".to_owned(), self.kubeconfig.clone()),
            ("PATH".to_owned(), path.join(":")),
        ])
    }

    /// `kubectl` for this cluster.
    pub(crate) fn kubectl(&self) -> Run {
        let own = self
            .programs
            .iter()
            .map(|folder| folder.join("kubectl"))
            .find(|path| path.exists());
        Run::new(own.unwrap_or_else(|| "kubectl".into())).envs(self.environment())
    }
}

/// The way to the local cluster.
pub(crate) fn own(cache: &Cache, layout: &Layout) -> Result<Reach> {
    Ok(Reach {
        kubeconfig: layout.kubeconfig("admin").display().to_string(),
        programs: vec![KUBERNETES.build(cache)?, HELM.build(cache)?],
    })
}

/// The way to the local cluster with the commands that are built already.
pub(crate) fn own_so_far(cache: &Cache, layout: &Layout) -> Result<Reach> {
    Ok(Reach {
        kubeconfig: layout.kubeconfig("admin").display().to_string(),
        programs: KUBERNETES.built(cache)?.into_iter().chain(HELM.built(cache)?).collect(),
    })
}

/// Prints the exports for a shell.
pub(crate) fn print(reach: &Reach) {
    let folders: Vec<String> = reach
        .programs
        .iter()
        .map(|folder| folder.display().to_string())
        .collect();
    result(exports(&reach.kubeconfig, &folders));
}

fn exports(kubeconfig: &str, folders: &[String]) -> String {
    let kubeconfig = format!("export KUBECONFIG={}", quote(kubeconfig));
    if folders.is_empty() {
        return kubeconfig;
    }
    format!(
        "{kubeconfig}
export PATH={}:\"$PATH\"",
        quote(&folders.join(":"))
    )
}

/// A word that a shell takes as it stands.
pub(crate) fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_gets_back_what_was_exported() {
        let strange = "/a b/it's $HOME";
        let script = format!(
            "{}; printf '%s|%s' \"$KUBECONFIG\" \"$PATH\"",
            exports(strange, &["/x y".to_owned()])
        );
        let said = Run::new("/bin/sh")
            .args(["-c", &script])
            .env("PATH", "/bin")
            .output()
            .unwrap();
        assert_eq!(said, format!("{strange}|/x y:/bin"));
    }

    #[test]
    fn nothing_is_added_to_the_path_where_nothing_was_built() {
        assert_eq!(exports("/k", &[]), "export KUBECONFIG='/k'");
    }
}
