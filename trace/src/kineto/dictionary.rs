//! Texts of columns, numbered for the whole trace.

use hashbrown::HashMap;

use super::Failure;
use super::batch::SparseColumn;
use super::columns::Sparse;
use super::gather::Gather;
use super::json::unescape;
use flopwatch_model::{Category, ColumnId, Events, LossReason};

/// What part of the bytes that all strings may take one column may have: without shapes a trace is worth reading, too.
const SHARE: u64 = 16;

/// The texts of one column by what stands for them in the trace.
#[derive(Debug, Default)]
pub(super) struct Dictionary {
    known: HashMap<Vec<u8>, u32>,
    bytes: u64,
}

impl Gather<'_> {
    /// The columns of `category` that few events have, texts by their numbers in the trace.
    pub(super) fn sparse(&mut self, category: Category, all: Vec<Sparse<'_>>) -> Result<Vec<SparseColumn>, Failure> {
        let mut columns = Vec::with_capacity(all.len());
        for Sparse { id, mut message, texts } in all {
            if id.is_text() {
                let numbers = texts.list.iter().map(|raw| self.text(category, id, raw));
                let numbers = numbers.collect::<Result<Vec<u32>, Failure>>()?;
                for (_, value) in &mut message {
                    let number = usize::try_from(*value).ok().and_then(|at| numbers.get(at));
                    *value = number.copied().unwrap_or(0).into();
                }
            }
            columns.push((id, message));
        }
        Ok(columns)
    }

    /// The number of a text in its column; 0, which stands for none, where the column has too many already.
    fn text(&mut self, category: Category, id: ColumnId, raw: &[u8]) -> Result<u32, Failure> {
        let most = self.limits.max_string_bytes / SHARE;
        let dictionary = self.dictionaries.entry((category, id)).or_default();
        if let Some(number) = dictionary.known.get(raw) {
            return Ok(*number);
        }
        let bytes = dictionary
            .bytes
            .saturating_add(u64::try_from(raw.len()).unwrap_or(u64::MAX));
        if bytes > most {
            self.lose(LossReason::Truncated, &format!("texts of {}", id.name()));
            return Ok(0);
        }
        dictionary.bytes = bytes;
        self.take(raw.len())?;
        let text = self.publishable(&plain(raw));
        let events = self.capture.events.entry(category);
        let events = events.or_insert_with(|| Events::new(category));
        let place = events.add_column(id);
        let Some(column) = events.columns.get_mut(place) else {
            return Ok(0);
        };
        let number = u32::try_from(column.texts.len()).unwrap_or(u32::MAX);
        column.texts.push(text);
        self.dictionaries
            .entry((category, id))
            .or_default()
            .known
            .insert(raw.to_vec(), number);
        Ok(number)
    }
}

/// The text: escapes resolved, and JSON without the spaces between its parts, also where it stood
/// in quotes.
fn plain(raw: &[u8]) -> String {
    if !matches!(raw.first(), Some(b'[' | b'{')) {
        return unescape(raw);
    }
    let quote = memchr::memchr(b'"', raw).and_then(|at| at.checked_sub(1));
    let was_quoted = quote.is_some_and(|before| raw.get(before) == Some(&b'\\'));
    let unquoted = was_quoted.then(|| unescape(raw));
    let raw = unquoted.as_deref().map_or(raw, str::as_bytes);
    let mut kept = Vec::with_capacity(raw.len());
    let (mut quoted, mut escaped) = (false, false);
    for byte in raw {
        if quoted || !byte.is_ascii_whitespace() {
            kept.push(*byte);
        }
        quoted ^= *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
    }
    String::from_utf8_lossy(&kept).into_owned()
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn json_loses_its_spaces_and_texts_keep_theirs() {
        for (raw, text) in [
            ("[[2, 3], [ ]]", "[[2,3],[]]"),
            (r#"["signed char", "a\" b", ""]"#, r#"["signed char","a\" b",""]"#),
            (r#"[\"signed char\", \"a\\\" b\"]"#, r#"["signed char","a\" b"]"#),
            ("all reduce", "all reduce"),
            (r#"say \"hi\""#, "say \"hi\""),
        ] {
            assert_eq!(plain(raw.as_bytes()), text);
        }
    }
}
