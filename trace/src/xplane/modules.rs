//! The plane `/host:metadata`: an HLO module per compiled program.

use super::Failure;
use super::fill::Fill;
use super::plane::{Kind, Plane, Stat};
use crate::redact;
use flopwatch_model::{LossReason, Program};

/// The plane that holds them.
pub(super) const PLANE: &[u8] = b"/host:metadata";

/// Bytes of all modules together; a module of a large model has a few million.
const MAX_BYTES: usize = 32 << 20;

impl Fill<'_> {
    /// Keeps the modules of the plane. A module in which something looks like a secret is left out:
    /// a message has no room for what would stand in its place.
    pub(super) fn modules(&mut self, plane: &Plane<'_>) -> Result<(), Failure> {
        for kind in plane.kinds() {
            for stat in kind.stats() {
                let Some((_, Stat::Text(proto))) = plane.stat(stat?, is_module)? else {
                    continue;
                };
                let held: usize = self.capture.programs.iter().map(|program| program.proto.len()).sum();
                if held.saturating_add(proto.len()) > MAX_BYTES {
                    let what = "HLO modules beyond 32 MiB in all";
                    self.capture.losses.add(LossReason::Truncated, what, 1);
                } else if redact::holds_secret(&proto) {
                    let what = "HLO modules with what looks like a secret";
                    self.capture.losses.add(LossReason::Skipped, what, 1);
                } else {
                    self.module(kind, proto)?;
                }
            }
        }
        Ok(())
    }

    fn module(&mut self, kind: &Kind<'_>, proto: Vec<u8>) -> Result<(), Failure> {
        self.take(kind.name.len())?;
        let text = self.publishable(kind.name);
        let numbered = text.strip_suffix(')').and_then(|text| text.rsplit_once('('));
        let numbered = numbered.and_then(|(name, id)| Some((name.to_owned(), id.parse().ok()?)));
        let (name, id) = numbered.unwrap_or((text, 0));
        self.capture.programs.push(Program { name, id, proto });
        Ok(())
    }
}

fn is_module(name: &[u8]) -> bool {
    matches!(name, b"Hlo Proto" | b"hlo_proto")
}
