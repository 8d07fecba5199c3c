//! Chunks: two lengths and a block of LZ4, which holds one message with its length before it.

use super::ReportError;
use super::container::{Container, Extent, message, out_of_bounds};
use crate::wire::Message;

/// How many bytes one byte of LZ4 becomes, at the most.
const MAX_INFLATED_OF_A_BYTE: u64 = 255;

/// Where a chunk is, before anything of it is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chunk {
    /// Offset in the file at which the chunk begins, in bytes.
    begin: u64,
    /// Block of the chunk.
    block: Extent,
    /// Bytes that the block becomes.
    inflated: usize,
}

/// Memory that a core uses again for one chunk after the other.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    block: Vec<u8>,
    inflated: Vec<u8>,
}

impl Chunk {
    /// The chunk at the begin of `extent`, of at most `limit` bytes when it is inflated.
    pub(super) fn at(container: &Container, extent: Extent, limit: u64) -> Result<Self, ReportError> {
        const WHAT: &str = "a chunk";
        let (length, next) = container.number(extent, WHAT)?;
        let rest = Extent {
            begin: next,
            end: extent.end,
        };
        let (inflated, begin) = container.number(rest, WHAT)?;
        let end = begin.checked_add(length).filter(|end| *end <= extent.end);
        let end = end.ok_or_else(|| out_of_bounds(WHAT, "its section", extent.begin))?;
        if inflated > length.saturating_mul(MAX_INFLATED_OF_A_BYTE) {
            return Err(ReportError::Chunk {
                what: "claims to inflate to more than its bytes can",
                offset: extent.begin,
            });
        }
        let fitting = usize::try_from(inflated).ok().filter(|_| inflated <= limit);
        let too_many = || ReportError::TooMany {
            what: "bytes of one chunk",
            limit,
        };
        Ok(Self {
            begin: extent.begin,
            block: Extent { begin, end },
            inflated: fitting.ok_or_else(too_many)?,
        })
    }

    /// Where the next one begins.
    pub(super) fn end(self) -> u64 {
        self.block.end
    }

    /// Bytes of it when it is inflated.
    pub(super) fn inflated(self) -> u64 {
        u64::try_from(self.inflated).unwrap_or(u64::MAX)
    }

    /// An error in its message.
    pub(super) fn damaged(self, what: &'static str) -> ReportError {
        ReportError::Chunk {
            what,
            offset: self.begin,
        }
    }

    /// The message in it.
    pub(super) fn message<'b>(
        self,
        container: &Container,
        buffers: &'b mut Buffers,
    ) -> Result<Message<'b>, ReportError> {
        let Buffers { block, inflated } = buffers;
        // No longer than the file, since it lies in it.
        block.resize(usize::try_from(self.block.length()).unwrap_or(0), 0);
        container.fill(self.block.begin, block)?;
        inflated.resize(self.inflated, 0);
        let made = lz4_flex::block::decompress_into(block, inflated);
        if made.ok() != Some(self.inflated) {
            return Err(self.damaged("does not inflate to what it claims"));
        }
        let (inside, behind) = message(inflated, 0)
            .split_message()
            .ok()
            .ok_or_else(|| self.damaged("is no message"))?;
        if !behind.bytes.is_empty() {
            return Err(self.damaged("holds more than one message"));
        }
        Ok(inside)
    }
}
