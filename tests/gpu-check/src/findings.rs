//! What every check of this program comes to: results for programs and for people, and whether it
//! passed.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde::Serialize;

/// What a check found.
pub(crate) trait Findings: Serialize {
    /// Whether everything holds, as far as it was tried.
    fn passed(&self) -> bool;

    /// The outcome as a sentence.
    fn verdict(&self) -> String;

    /// The results as `docs/gpu-results.md` has them.
    fn markdown(&self) -> Result<String>;

    /// Writes `results.json` and `results.md` into a folder, which is made where it is not there.
    fn write(&self, folder: &Path) -> Result<()> {
        let cannot = || format!("cannot write {}", folder.display());
        std::fs::create_dir_all(folder).with_context(cannot)?;
        let (json, text) = (serde_json::to_string_pretty(self)?, self.markdown()?);
        std::fs::write(folder.join("results.json"), json).with_context(cannot)?;
        std::fs::write(folder.join("results.md"), text).with_context(cannot)
    }

    /// Ends a check of `what`: writes the results and says the verdict. Fails where it did not
    /// pass.
    fn conclude(&self, what: &str, folder: &Path) -> Result<()> {
        self.write(folder)?;
        eprintln!("{}", self.verdict());
        if self.passed() {
            Ok(())
        } else {
            bail!("{what} does not hold here, see {}", folder.display())
        }
    }
}
