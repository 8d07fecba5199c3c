//! Digests of an object's blocks: a part of an object can be checked without reading all of it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Bytes of a block: what a short range reads at least, and what is held in memory until it is
/// checked.
pub(crate) const BLOCK_BYTES: u64 = 1 << 20;

/// Bytes of a digest.
const DIGEST_BYTES: usize = 32;

/// The digests of an object's blocks, in order. The last block may be shorter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Blocks {
    /// Bytes of each block but the last.
    pub(crate) block_bytes: u64,
    /// The SHA-256 of each, one after the other, in base64.
    sha256: String,
}

impl Blocks {
    /// The digests, when they fit an object of `bytes`.
    pub(crate) fn digests(&self, bytes: u64) -> Option<Vec<[u8; DIGEST_BYTES]>> {
        let all = STANDARD_NO_PAD.decode(&self.sha256).ok()?;
        let (digests, rest) = all.as_chunks::<DIGEST_BYTES>();
        let blocks = (self.block_bytes > 0).then(|| bytes.div_ceil(self.block_bytes))?;
        let fits = rest.is_empty() && u64::try_from(digests.len()) == Ok(blocks) && self.block_bytes <= BLOCK_BYTES;
        fits.then(|| digests.to_vec())
    }
}

/// Digests an object as it passes by.
#[derive(Debug, Default)]
pub(crate) struct Digester {
    whole: Sha256,
    block: Sha256,
    in_block: u64,
    blocks: Vec<u8>,
    bytes: u64,
}

impl Digester {
    pub(crate) fn update(&mut self, mut piece: &[u8]) {
        self.whole.update(piece);
        self.bytes = self.bytes.saturating_add(length(piece));
        while !piece.is_empty() {
            let room = usize::try_from(BLOCK_BYTES - self.in_block).unwrap_or(usize::MAX);
            let (now, later) = piece.split_at(room.min(piece.len()));
            self.block.update(now);
            self.in_block += length(now);
            piece = later;
            if self.in_block == BLOCK_BYTES {
                self.end_block();
            }
        }
    }

    fn end_block(&mut self) {
        self.blocks.extend(self.block.finalize_reset());
        self.in_block = 0;
    }

    /// Bytes that passed by, the SHA-256 of them all, and the digests of their blocks.
    pub(crate) fn finish(mut self) -> (u64, String, Blocks) {
        if self.in_block > 0 {
            self.end_block();
        }
        let blocks = Blocks {
            block_bytes: BLOCK_BYTES,
            sha256: STANDARD_NO_PAD.encode(&self.blocks),
        };
        (self.bytes, hex::encode(self.whole.finalize()), blocks)
    }
}

fn length(piece: &[u8]) -> u64 {
    u64::try_from(piece.len()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_the_same_however_the_pieces_come() {
        let content: Vec<u8> = (0..2_500_000_u32).flat_map(u32::to_le_bytes).take(2_500_000).collect();
        let digest = |piece: usize| {
            let mut digester = Digester::default();
            content.chunks(piece).for_each(|piece| digester.update(piece));
            digester.finish()
        };
        let (bytes, sha256, blocks) = digest(content.len());
        assert_eq!(
            (bytes, sha256.as_str()),
            (2_500_000, hex::encode(Sha256::digest(&content)).as_str())
        );
        for piece in [1 << 20, 4096, 999_983] {
            assert_eq!(digest(piece), (bytes, sha256.clone(), blocks.clone()));
        }
        let digests = blocks.digests(bytes).unwrap();
        let block = usize::try_from(BLOCK_BYTES).unwrap();
        for (at, digest) in digests.iter().enumerate() {
            let part = &content[at * block..content.len().min((at + 1) * block)];
            assert_eq!(Sha256::digest(part).as_slice(), digest);
        }
    }

    #[test]
    fn digests_that_do_not_fit_the_size_are_none() {
        let mut digester = Digester::default();
        digester.update(&vec![7; 3_000_000]);
        let (bytes, _, blocks) = digester.finish();
        assert_eq!(blocks.digests(bytes).map(|digests| digests.len()), Some(3));
        assert_eq!(blocks.digests(2 << 20), None);
        let empty = Digester::default().finish().2;
        assert_eq!(empty.digests(0), Some(Vec::new()));
        for (block_bytes, sha256) in [(0, ""), (BLOCK_BYTES, "!"), (BLOCK_BYTES, "AAAA"), (u64::MAX, "")] {
            let odd = Blocks {
                block_bytes,
                sha256: sha256.to_owned(),
            };
            assert_eq!(odd.digests(5), None, "{odd:?}");
        }
    }
}
