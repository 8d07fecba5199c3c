//! Bounds on what a foreign file may make a reader hold.

use std::io::{self, Read};
use std::time::Duration;

/// Bounds on what a file may make a reader hold and do. The defaults fit a child process with about
/// 8 GiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadLimits {
    /// Events of all tables together. An event takes 40 to 80 bytes of memory.
    pub max_events: u64,
    /// Rows of any one table.
    pub max_table_rows: u64,
    /// Bytes of one uncompressed chunk of a table, and of any one event or member of a text.
    pub max_chunk_bytes: u64,
    /// Bytes of text or messages in all, inflated where the file is gzip.
    pub max_text_bytes: u64,
    /// Bytes of all strings that are kept.
    pub max_string_bytes: u64,
    /// Rows of the timeline (streams and threads).
    pub max_rows: u32,
    /// Time that all queries of one database may take together.
    pub max_query_time: Duration,
}

impl Default for ReadLimits {
    fn default() -> Self {
        Self {
            max_events: 50_000_000,
            max_table_rows: 200_000_000,
            max_chunk_bytes: 64 << 20,
            max_text_bytes: 64 << 30,
            max_string_bytes: 256 << 20,
            max_rows: 1 << 20,
            max_query_time: Duration::from_mins(5),
        }
    }
}

/// All bytes of `source`, or `None` where it holds more than `limit` of them.
pub(crate) fn read_at_most(source: impl Read, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    source.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    let fits = u64::try_from(bytes.len()).is_ok_and(|length| length <= limit);
    Ok(fits.then_some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_of_as_many_bytes_as_the_limit_is_read() {
        assert_eq!(
            read_at_most(b"four".as_slice(), 4).unwrap().as_deref(),
            Some(b"four".as_slice())
        );
        assert_eq!(
            read_at_most(b"".as_slice(), 0).unwrap().as_deref(),
            Some(b"".as_slice())
        );
        assert_eq!(
            read_at_most(b"all".as_slice(), u64::MAX).unwrap().as_deref(),
            Some(b"all".as_slice())
        );
    }

    #[test]
    fn a_source_that_holds_more_is_not_read_further() {
        assert_eq!(read_at_most(io::repeat(7), 4).unwrap(), None);
        assert_eq!(read_at_most(b"f".as_slice(), 0).unwrap(), None);
    }
}
