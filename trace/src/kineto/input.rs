//! The text of a trace in blocks, inflated where it is gzip.

use std::io::{self, Read};

use crate::gzip::{self, Members};

/// Bytes read at a time: at first, so that small files cost little, and at most.
const FIRST_BLOCK: usize = 128 << 10;
const MAX_BLOCK: usize = 16 << 20;

/// The same for each core, since what is read is best parsed while it is in a cache.
const OF_A_CORE: usize = 2 << 20;

/// A part of each block is room for the end of the one before, so that the block itself need not
/// move.
const HEAD: usize = 16;

/// Text that was read, of which some was taken.
#[derive(Debug, Default)]
pub(super) struct Block {
    bytes: Vec<u8>,
    begin: usize,
    end: usize,
}

impl Block {
    /// What was not taken yet.
    pub(super) fn text(&self) -> &[u8] {
        self.bytes.get(self.begin..self.end).unwrap_or_default()
    }

    /// Takes the first `bytes` of it.
    pub(super) fn take(&mut self, bytes: usize) {
        self.begin = self.begin.saturating_add(bytes).min(self.end);
    }
}

/// Where text comes from.
pub(super) struct Input {
    reader: Box<dyn Read + Send>,
    is_over: bool,
    read_error: Option<io::Error>,
    given: u64,
    /// How much text there is, where that can be known before.
    length: Option<u64>,
    limit: u64,
    block: usize,
}

impl Input {
    /// Text of a file of `length` bytes; `limit` is how many bytes of text there may be.
    pub(super) fn open(mut file: impl Read + Send + 'static, length: u64, limit: u64) -> io::Result<Self> {
        let mut magic = Vec::with_capacity(2);
        Read::by_ref(&mut file).take(2).read_to_end(&mut magic)?;
        let whole = io::Cursor::new(magic.clone()).chain(file);
        let (reader, length): (Box<dyn Read + Send>, _) = if magic == gzip::MAGIC {
            let text = Members::new(io::BufReader::with_capacity(1 << 18, whole));
            (Box::new(text), None)
        } else {
            (Box::new(whole), Some(length))
        };
        Ok(Self {
            reader,
            is_over: false,
            read_error: None,
            given: 0,
            length,
            limit,
            block: FIRST_BLOCK,
        })
    }

    /// How many events of a kind there will be, after `so_far`, if they go on as they began; `None`
    /// where nothing tells.
    pub(super) fn expected(&self, so_far: usize) -> Option<usize> {
        // Less says nothing of the whole.
        const MIN_BLOCK_BYTES: u64 = 4 << 20;
        let length = self.length.filter(|_| self.given >= MIN_BLOCK_BYTES)?;
        let expected = u128::try_from(so_far).ok()? * u128::from(length) / u128::from(self.given);
        // A little more, since no part is like another.
        usize::try_from(expected + expected / 16).ok()
    }

    /// No more will come.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// What went wrong behind the text that was read, e.g. a gzip stream that is cut off.
    pub(super) fn read_error(&self) -> Option<&io::Error> {
        self.read_error.as_ref()
    }

    /// The limit, where there is more text than it allows.
    pub(super) fn passed_limit(&self) -> Option<u64> {
        (self.given > self.limit).then_some(self.limit)
    }

    /// Fills `block` with the next text, leaving room before it.
    pub(super) fn fill(&mut self, block: &mut Block) {
        let max = (OF_A_CORE * rayon::current_num_threads()).min(MAX_BLOCK);
        block.bytes.resize(self.block, 0);
        block.begin = self.block / HEAD;
        block.end = block.begin;
        self.block = (self.block * 2).min(max);
        while block.end < block.bytes.len() && !self.is_over {
            let free = block.bytes.get_mut(block.end..).unwrap_or_default();
            match self.reader.read(free) {
                Ok(0) => self.is_over = true,
                Ok(read) => {
                    block.end += read;
                    self.given = self.given.saturating_add(u64::try_from(read).unwrap_or(u64::MAX));
                    self.is_over = self.passed_limit().is_some();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.read_error = Some(error);
                    self.is_over = true;
                }
            }
        }
    }
}

/// Puts what is left of `block` before the text of `next`.
pub(super) fn join(block: &Block, next: &mut Block) {
    let rest = block.text();
    if let Some(begin) = next.begin.checked_sub(rest.len())
        && let Some(free) = next.bytes.get_mut(begin..next.begin)
    {
        free.copy_from_slice(rest);
        next.begin = begin;
    } else {
        let bytes = [rest, next.text()].concat();
        next.begin = 0;
        next.end = bytes.len();
        next.bytes = bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_taken_comes_before_what_follows() {
        const HEAD: usize = 1 << 10;
        for rest in [0, 5, HEAD, HEAD + 7] {
            let mut block = Block {
                bytes: (0..=255).cycle().take(HEAD + 10).collect(),
                begin: 2,
                end: HEAD + 9,
            };
            block.take(HEAD + 7 - rest);
            let mut next = Block {
                bytes: vec![7; HEAD + 4],
                begin: HEAD,
                end: HEAD + 4,
            };
            let expected = [block.text(), &[7; 4]].concat();
            join(&block, &mut next);
            assert!(next.text() == expected, "{rest}");
        }
    }

    #[test]
    fn how_many_events_will_come_is_told_of_text_whose_length_is_known() {
        let text = vec![b' '; 12 << 20];
        let mut zipped = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        io::Write::write_all(&mut zipped, &text).unwrap();
        let zipped = zipped.finish().unwrap();
        for (file, known) in [(text, true), (zipped, false)] {
            let length = u64::try_from(file.len()).unwrap();
            let mut input = Input::open(io::Cursor::new(file), length, u64::MAX).unwrap();
            let mut block = Block::default();
            assert_eq!(input.expected(1000), None, "nothing was read");
            while input.given < 6 << 20 {
                input.fill(&mut block);
            }
            let expected = input
                .expected(1000)
                .map(|all| all * usize::try_from(input.given).unwrap() / (12 << 20));
            assert_eq!(
                expected.map(|so_far| so_far.abs_diff(1062) < 3),
                known.then_some(true),
                "{expected:?}"
            );
        }
    }
}
