//! Pages of a column, inflated within a bound. Parquet's own reader inflates a page before it
//! compares its size with what was said.

use std::collections::VecDeque;
use std::io::Read;
use std::sync::Arc;

use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use parquet::basic::{Compression, Encoding, Type};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::serialized_reader::SerializedPageReader;

/// Pages of a column of a group. Written are a few; each takes more memory than it takes to say
/// that it is there.
const MAX_PAGES: usize = 1_024;

/// The pages of one column of a group, all of them inflated.
pub(super) struct Pages(VecDeque<Page>);

impl Pages {
    /// Takes what inflates from `budget`; a page may say to hold at most `max` values.
    pub(super) fn new(
        file: &Bytes,
        chunk: &ColumnChunkMetaData,
        rows: usize,
        max: u64,
        budget: &mut usize,
    ) -> Result<Self> {
        let stored = chunk.compression();
        if !matches!(stored, Compression::GZIP(_) | Compression::UNCOMPRESSED) {
            return Err(refused("its compression"));
        }
        let offsets = [Some(chunk.data_page_offset()), chunk.dictionary_page_offset()];
        if chunk.compressed_size() < 0 || offsets.into_iter().flatten().any(i64::is_negative) {
            return Err(refused("the place of a column"));
        }
        let (start, length) = chunk.byte_range();
        let end = start.checked_add(length).and_then(|end| usize::try_from(end).ok());
        if end.is_none_or(|end| end > file.len()) {
            return Err(refused("the place of a column"));
        }
        // Said to be stored as they are, so that pages come as they lie there.
        let raw = chunk
            .clone()
            .into_builder()
            .set_compression(Compression::UNCOMPRESSED)
            .build()?;
        let mut reader = SerializedPageReader::new(Arc::new(file.clone()), &raw, rows, None)?;
        let mut pages = VecDeque::new();
        while let Some(page) = reader.get_next_page()? {
            let page = inflated(page, stored, budget)?;
            if pages.len() == MAX_PAGES || !is_ours(&page, chunk.column_type(), max) {
                return Err(refused("a page"));
            }
            pages.push_back(page);
        }
        Ok(Self(pages))
    }
}

fn refused(what: &str) -> ParquetError {
    ParquetError::General(format!("{what} is not as Flopwatch writes it"))
}

fn inflated(page: Page, stored: Compression, budget: &mut usize) -> Result<Page> {
    let mut inflate = |buf: Bytes| -> Result<Bytes> {
        let buf = if stored == Compression::UNCOMPRESSED {
            buf
        } else {
            let max = u64::try_from(*budget).unwrap_or(u64::MAX).saturating_add(1);
            let mut inflated = Vec::new();
            MultiGzDecoder::new(buf.as_ref()).take(max).read_to_end(&mut inflated)?;
            Bytes::from(inflated)
        };
        *budget = budget
            .checked_sub(buf.len())
            .ok_or_else(|| refused("the size of its pages"))?;
        Ok(buf)
    };
    match page {
        Page::DataPage {
            buf,
            num_values,
            encoding,
            def_level_encoding,
            rep_level_encoding,
            ..
        } => Ok(Page::DataPage {
            buf: inflate(buf)?,
            num_values,
            encoding,
            def_level_encoding,
            rep_level_encoding,
            statistics: None,
        }),
        Page::DictionaryPage {
            buf,
            num_values,
            encoding,
            is_sorted,
        } => Ok(Page::DictionaryPage {
            buf: inflate(buf)?,
            num_values,
            encoding,
            is_sorted,
        }),
        Page::DataPageV2 { .. } => Err(refused("a page")),
    }
}

/// Whether a page is encoded in a way that we use, and can hold as many values as it says.
fn is_ours(page: &Page, type_: Type, max: u64) -> bool {
    let values = u64::from(page.num_values());
    if values > max {
        return false;
    }
    match page {
        Page::DataPage {
            encoding,
            def_level_encoding,
            rep_level_encoding,
            ..
        } => {
            let encoded = matches!(
                encoding,
                Encoding::PLAIN | Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY
            );
            encoded && *def_level_encoding == Encoding::RLE && *rep_level_encoding == Encoding::RLE
        }
        Page::DictionaryPage { buf, encoding, .. } => {
            // A text has its length before it.
            let min = match type_ {
                Type::INT64 => 8,
                Type::BYTE_ARRAY => 4,
                _ => return false,
            };
            let plain = matches!(encoding, Encoding::PLAIN | Encoding::PLAIN_DICTIONARY);
            plain && u64::try_from(buf.len()).is_ok_and(|bytes| values.saturating_mul(min) <= bytes)
        }
        Page::DataPageV2 { .. } => false,
    }
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        Ok(self.0.pop_front())
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        let metadata = |page: &Page| PageMetadata {
            num_rows: None,
            num_levels: usize::try_from(page.num_values()).ok(),
            is_dict: page.is_dictionary_page(),
        };
        Ok(self.0.front().map(metadata))
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.0.pop_front();
        Ok(())
    }
}

impl Iterator for Pages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}
