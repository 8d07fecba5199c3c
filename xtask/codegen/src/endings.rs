//! The endings of profilers' files as TypeScript: the viewer offers files of them where a capture
//! is chosen. A module of its own, since the page needs it before the catalogue.

use std::collections::BTreeSet;

use flopwatch_api::artifact::raw_files;

const HEAD: &str = "\
// Written by `cargo xtask codegen` from the table of profilers; a test fails when it drifts.
";

/// The module that `web/src/generated/endings.ts` holds.
pub fn endings() -> Result<String, serde_json::Error> {
    let ending = |name: &'static str| name.rsplit_once('.').map(|(_, ending)| ending);
    let endings: BTreeSet<_> = raw_files().filter_map(|file| ending(file.name)).collect();
    let endings = serde_json::to_string_pretty(&endings)?;
    let about = "/** How the names of profilers' files end among a capture's artifacts. */";
    Ok(format!(
        "{HEAD}\n{about}\nexport const RAW_ENDINGS = {endings} as const;\n"
    ))
}
