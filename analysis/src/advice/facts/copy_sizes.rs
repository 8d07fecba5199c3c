//! How much copies moved, as far as the source says it.

use flopwatch_measures::work::Work;
use flopwatch_report::page::Unit;

use super::Facts;
use crate::advice::finding::FindingDraft;
use crate::advice::wording::bytes;

/// Sizes of some copies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CopySizes {
    /// Sum in bytes of those whose size is known.
    pub(crate) bytes: u64,
    /// How many these are.
    pub(crate) known: u64,
    /// How many have a size that the source does not say.
    pub(crate) unknown: u64,
}

impl Facts<'_> {
    /// How much `copies` moved.
    pub(crate) fn moved<'w>(&self, copies: impl IntoIterator<Item = &'w Work>) -> CopySizes {
        let mut moved = CopySizes::default();
        for copy in copies {
            match copy.bytes(self.timeline) {
                Some(bytes) => {
                    moved.bytes = moved.bytes.saturating_add(bytes);
                    moved.known += 1;
                }
                None => moved.unknown += 1,
            }
        }
        moved
    }
}

impl CopySizes {
    /// For people: `1.05 MB`, `1.05 MB without 3 of unknown size`, `an unknown number of bytes`.
    pub(crate) fn text(self) -> String {
        match (self.known, self.unknown) {
            (0, 1..) => "an unknown number of bytes".to_owned(),
            (_, 0) => bytes(self.bytes),
            (_, unknown) => format!("{} without {unknown} of unknown size", bytes(self.bytes)),
        }
    }

    /// `found` with what is known as evidence.
    pub(in crate::advice) fn add_evidence(self, found: FindingDraft) -> FindingDraft {
        let found = if self.known > 0 {
            found.evidence("copied", self.bytes, Unit::Bytes)
        } else {
            found
        };
        if self.unknown == 0 {
            return found;
        }
        found.evidence("copies of unknown size", self.unknown, Unit::None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_is_not_nothing() {
        let text = |known, unknown| {
            CopySizes {
                bytes: 1_050_000 * known,
                known,
                unknown,
            }
            .text()
        };
        assert_eq!(text(1, 0), "1.05 MB");
        assert_eq!(text(1, 3), "1.05 MB without 3 of unknown size");
        assert_eq!(text(0, 3), "an unknown number of bytes");
    }
}
