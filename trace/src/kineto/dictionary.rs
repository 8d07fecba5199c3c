//! Numbers of the texts in the optional columns of events, such as the shapes of an operator's
//! inputs: each distinct text of a column is kept once for the whole trace.

use hashbrown::HashMap;

use super::Failure;
use super::batch::SparseColumn;
use super::columns::Sparse;
use super::gather::Gather;
use super::json::unescape;
use flopwatch_model::{Category, ColumnId, Events, LossReason};

/// Divisor of the bytes that all strings of a trace may take, which gives the bytes for the texts
/// of one column. Texts beyond are left out: a trace is worth reading without its shapes, too.
const COLUMN_BYTES_DIVISOR: u64 = 16;

/// The texts of one column.
#[derive(Debug, Default)]
pub(super) struct Dictionary {
    /// The number of each text, by the text as the trace has it.
    numbers: HashMap<Vec<u8>, u32>,
    /// Bytes of these texts.
    bytes: u64,
}

impl Gather<'_> {
    /// The optional columns of a piece's events of `category`, with the piece's numbers of texts
    /// replaced by those of the trace. Fails where the strings of the trace take too many bytes.
    pub(super) fn sparse(
        &mut self,
        category: Category,
        piece_columns: Vec<Sparse<'_>>,
    ) -> Result<Vec<SparseColumn>, Failure> {
        let mut columns = Vec::with_capacity(piece_columns.len());
        for Sparse { id, mut values, texts } in piece_columns {
            if id.is_text() {
                let numbers = texts.list.iter().map(|raw| self.text_number(category, id, raw));
                let numbers = numbers.collect::<Result<Vec<u32>, Failure>>()?;
                for (_, value) in &mut values {
                    let number = usize::try_from(*value).ok().and_then(|index| numbers.get(index));
                    *value = number.copied().unwrap_or(0).into();
                }
            }
            columns.push((id, values));
        }
        Ok(columns)
    }

    /// The number of a text in its column, to which a new text is added. 0, which stands for no
    /// text, where the texts of the column would take too many bytes: that is counted as a loss.
    fn text_number(&mut self, category: Category, id: ColumnId, raw: &[u8]) -> Result<u32, Failure> {
        let max_bytes = self.limits.max_string_bytes / COLUMN_BYTES_DIVISOR;
        let dictionary = self.dictionaries.entry((category, id)).or_default();
        if let Some(number) = dictionary.numbers.get(raw) {
            return Ok(*number);
        }
        let bytes = dictionary
            .bytes
            .saturating_add(u64::try_from(raw.len()).unwrap_or(u64::MAX));
        if bytes > max_bytes {
            self.count_loss(LossReason::Truncated, &format!("texts of {}", id.name()));
            return Ok(0);
        }
        dictionary.bytes = bytes;
        self.take(raw.len())?;
        let text = self.publishable(&normalize(raw));
        let events = self.capture.events.entry(category);
        let events = events.or_insert_with(|| Events::new(category));
        let position = events.add_column(id);
        let Some(column) = events.columns.get_mut(position) else {
            return Ok(0);
        };
        let number = u32::try_from(column.texts.len()).unwrap_or(u32::MAX);
        column.texts.push(text);
        self.dictionaries
            .entry((category, id))
            .or_default()
            .numbers
            .insert(raw.to_vec(), number);
        Ok(number)
    }
}

/// The text of a value with its escapes resolved. JSON, which may itself be the text of a string,
/// loses the spaces between its parts.
fn normalize(raw: &[u8]) -> String {
    if !matches!(raw.first(), Some(b'[' | b'{')) {
        return unescape(raw);
    }
    // JSON in a string has a backslash before each of its quotes.
    let before_quote = memchr::memchr(b'"', raw).and_then(|quote| quote.checked_sub(1));
    let is_in_string = before_quote.is_some_and(|before| raw.get(before) == Some(&b'\\'));
    let unescaped = is_in_string.then(|| unescape(raw));
    let json = unescaped.as_deref().map_or(raw, str::as_bytes);
    let mut compact = Vec::with_capacity(json.len());
    let (mut quoted, mut escaped) = (false, false);
    for byte in json {
        if quoted || !byte.is_ascii_whitespace() {
            compact.push(*byte);
        }
        quoted ^= *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
    }
    String::from_utf8_lossy(&compact).into_owned()
}

#[cfg(test)]
mod tests {
    use super::normalize;

    #[test]
    fn json_loses_its_spaces_and_texts_keep_theirs() {
        for (raw, text) in [
            ("[[2, 3], [ ]]", "[[2,3],[]]"),
            (r#"["signed char", "a\" b", ""]"#, r#"["signed char","a\" b",""]"#),
            (r#"[\"signed char\", \"a\\\" b\"]"#, r#"["signed char","a\" b"]"#),
            ("all reduce", "all reduce"),
            (r#"say \"hi\""#, "say \"hi\""),
        ] {
            assert_eq!(normalize(raw.as_bytes()), text);
        }
    }
}
