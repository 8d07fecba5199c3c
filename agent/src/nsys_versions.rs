//! The versions of Nsight Systems that an agent carries. An importer reads the raw captures of its
//! own version only, so pods that were prepared with earlier tools are served for as long as the
//! agent carries those too.

use std::path::{Path, PathBuf};

use flopwatch_attach::nsys::HostTools;
use flopwatch_launcher::needed::{self, Driver, Outdated};
use flopwatch_pipeline::failure::chain;
use flopwatch_pipeline::steps::{ChildRunner, Limits};
use flopwatch_pipeline::tools;
use tracing::{info, warn};

/// Tools by their version; the first are those that pods are prepared with now.
#[derive(Clone, Debug, Default)]
pub struct NsysVersions {
    tools: Vec<(String, HostTools)>,
    outdated: Option<Outdated>,
}

impl NsysVersions {
    /// Looks into folders that hold both halves of the tools; one without, or whose tools do not
    /// say their version, is left out with a warning. `own` is this program.
    pub async fn open(folders: impl IntoIterator<Item = &PathBuf>, own: &Path, limits: &Limits) -> Self {
        let mut nsys_versions = Self::default();
        for folder in folders {
            let found = match tools::in_folder(folder) {
                Ok(found) => found,
                Err(error) => {
                    warn!(folder = %folder.display(), %error, "no Nsight Systems there");
                    continue;
                }
            };
            let steps = ChildRunner::new(own.to_owned(), Some(found.clone()), limits.clone());
            match steps.version().await {
                Ok(version) => {
                    info!(folder = %folder.display(), version, "carries Nsight Systems");
                    nsys_versions.tools.push((version, found));
                }
                Err(error) => {
                    warn!(folder = %folder.display(), error = %chain(&error), "the Nsight Systems there is not used");
                }
            }
        }
        nsys_versions.outdated = nsys_versions.first().and_then(outdated);
        if let Some(Outdated { cupti, driver }) = nsys_versions.outdated {
            warn!(
                ?cupti,
                ?driver,
                "Nsight Systems is too old for the driver: CUDA is not traced"
            );
        }
        nsys_versions
    }

    /// Why programs are not traced by the tools that pods are prepared with now: their CUPTI is too
    /// old for the driver.
    pub const fn outdated(&self) -> Option<Outdated> {
        self.outdated
    }

    /// Tools of exactly that version; none where the agent does not carry them.
    pub fn get(&self, version: &str) -> Option<&HostTools> {
        self.tools
            .iter()
            .find(|(own, _)| own == version)
            .map(|(_, tools)| tools)
    }

    /// Those that pods are prepared with now; none when the agent carries none.
    pub fn first(&self) -> Option<&HostTools> {
        self.tools.first().map(|(_, tools)| tools)
    }

    /// Whether it carries none.
    pub const fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// The versions that the agent carries, separated by commas.
    pub fn versions(&self) -> String {
        let versions: Vec<&str> = self.tools.iter().map(|(version, _)| version.as_str()).collect();
        versions.join(", ")
    }
}

fn outdated(tools: &HostTools) -> Option<Outdated> {
    let names = needed::names(tools.nsys.parent()?).ok()?;
    Outdated::among(&names, Driver::of_node())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_found_by_exactly_their_version() {
        let at = |name: &str| HostTools {
            nsys: name.into(),
            importer: name.into(),
            libraries: Vec::new(),
        };
        let nsys_versions = NsysVersions {
            outdated: None,
            tools: vec![("2023.4.4.54-a".into(), at("new")), ("2022.4.2.1-d".into(), at("old"))],
        };
        assert_eq!(nsys_versions.get("2022.4.2.1-d").unwrap().nsys, Path::new("old"));
        assert_eq!(nsys_versions.first().unwrap().nsys, Path::new("new"));
        assert!(nsys_versions.get("2022.4.2.1").is_none());
        assert_eq!(nsys_versions.versions(), "2023.4.4.54-a, 2022.4.2.1-d");
    }
}
