//! Predicts which member of a JSON object comes next, by what came next in earlier objects.
//!
//! Most events of a trace have the same members, in the same order and with the same spaces. One
//! comparison of bytes then stands for a comma, a key, a colon, and the search for the key's
//! meaning.
//!
//! A [`KeyPredictor`] is a tree. A node stands for the text between two values: the comma behind
//! the last value, the spaces, the key and the colon; or the closing brace. A node has up to
//! [`MAX_SUCCESSORS`] successors, which are tried in the order in which they were first seen. A
//! reader's [`Position`] is the node that it passed last.
//!
//! Example: of these three objects
//!
//! ```text
//! {"ph": "X", "ts": 1}
//! {"ph": "X", "ts": 2}
//! {"ph": "X", "id": 3}
//! ```
//!
//! the first one makes a chain of three nodes below the root, read member by member:
//!
//! ```text
//! root --{"ph": --> ph --, "ts": --> ts --}--> end
//! ```
//!
//! The second object needs three comparisons and no parsing. The third one agrees up to `ph`; none
//! of the successors of `ph` matches, so the member is parsed, and `ph` gets a second successor:
//!
//! ```text
//! root --{"ph": --> ph --, "ts": --> ts --}--> end
//!                      \--, "id": --> id --}--> end
//! ```
//!
//! From then on either order of members is predicted. A prediction never changes what is read:
//! where no successor matches, the member is parsed as any JSON.
//!
//! Limits: a text of more than [`MAX_PATTERN_BYTES`] bytes, a successor beyond the fourth, and a
//! node beyond [`MAX_NODES`] are not kept. The reader's position is then [`DEAD_END`], from which
//! the rest of the object is parsed.

use super::json::{Cursor, Scan};

/// Maximum length in bytes of a text between two values: a comma, a new line with its indentation,
/// a key and a colon.
const MAX_PATTERN_BYTES: usize = 48;

/// Maximum number of successors of a node; a further member is parsed each time.
const MAX_SUCCESSORS: usize = 4;

/// Maximum number of nodes, so that a trace whose keys all differ costs little memory.
const MAX_NODES: usize = 512;

/// Index of the node before the object; as a successor, it stands for no node.
const ROOT: u16 = 0;
/// Index of the node for a member without a node of its own; it has no successors.
const DEAD_END: u16 = 1;

/// [`MAX_PATTERN_BYTES`] bytes as words, which are compared without a branch between them.
type Words = [u64; MAX_PATTERN_BYTES / 8];

/// The text of a node, padded to [`MAX_PATTERN_BYTES`].
#[derive(Debug, Clone, Copy, Default)]
struct Pattern {
    words: Words,
    /// Ones for the bits of `words` that belong to the text, zeros for the padding.
    masks: Words,
    length: usize,
}

impl Pattern {
    /// `None` where the text is longer than [`MAX_PATTERN_BYTES`].
    fn of(text: &[u8]) -> Option<Self> {
        let (mut padded, mut mask) = ([0; MAX_PATTERN_BYTES], [0; MAX_PATTERN_BYTES]);
        padded.get_mut(..text.len())?.copy_from_slice(text);
        mask.get_mut(..text.len())?.fill(u8::MAX);
        Some(Self {
            words: words(&padded),
            masks: words(&mask),
            length: text.len(),
        })
    }

    /// Whether `bytes` begin with the text. All words are compared: that takes less time than a
    /// loop up to the text's length.
    #[inline]
    fn begins(&self, bytes: &Words) -> bool {
        let both = bytes.iter().zip(&self.words).zip(&self.masks);
        both.fold(0, |differs, ((byte, word), mask)| differs | ((byte ^ word) & mask)) == 0
    }
}

#[inline]
fn words(bytes: &[u8; MAX_PATTERN_BYTES]) -> Words {
    let (words, _) = bytes.as_chunks::<8>();
    let mut found = Words::default();
    for (found, word) in found.iter_mut().zip(words) {
        *found = u64::from_le_bytes(*word);
    }
    found
}

/// A member as it stood after another one in some object.
#[derive(Debug, Clone, Copy)]
struct Node<K> {
    pattern: Pattern,
    /// The meaning of the member's key; `None` where the object ended.
    key: Option<K>,
    /// Indices of the successors, in the order in which they were first seen, padded with [`ROOT`].
    next: [u16; MAX_SUCCESSORS],
}

/// A reader's position in an object: the index of the node that it passed last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position(u16);

impl Position {
    /// The position before the object.
    pub(super) const ROOT: Self = Self(ROOT);
}

/// A tree of the sequences of members that objects of one kind had so far.
#[derive(Debug)]
pub(super) struct KeyPredictor<K> {
    nodes: Vec<Node<K>>,
}

impl<K> Default for KeyPredictor<K> {
    fn default() -> Self {
        let node = || Node {
            pattern: Pattern::default(),
            key: None,
            next: [ROOT; MAX_SUCCESSORS],
        };
        // The begin, and where one is lost.
        Self {
            nodes: vec![node(), node()],
        }
    }
}

impl<K: Copy> KeyPredictor<K> {
    /// Moves `cursor` to the value of the next member and returns the meaning of its key, as
    /// `parse_key` gives it for a key that was not predicted. Returns `None`, with the cursor after
    /// the object, where there is no further member.
    #[inline]
    pub(super) fn next_key<'a>(
        &mut self,
        cursor: &mut Cursor<'a>,
        position: &mut Position,
        parse_key: impl FnOnce(&'a [u8]) -> K,
    ) -> Scan<Option<K>> {
        if let Some((next, length, key)) = self.match_pattern(cursor, *position) {
            cursor.advance(length);
            *position = next;
            return Ok(key);
        }
        self.parse_member(cursor, position, parse_key)
    }

    #[inline]
    fn match_pattern(&self, cursor: &Cursor<'_>, position: Position) -> Option<(Position, usize, Option<K>)> {
        let ahead = words(cursor.ahead()?);
        let node = self.nodes.get(usize::from(position.0))?;
        for next in node.next {
            if next == ROOT {
                return None;
            }
            let node = self.nodes.get(usize::from(next))?;
            if node.pattern.begins(&ahead) {
                return Some((Position(next), node.pattern.length, node.key));
            }
        }
        None
    }

    /// Parses the next key as any JSON, and adds a node for it.
    fn parse_member<'a>(
        &mut self,
        cursor: &mut Cursor<'a>,
        position: &mut Position,
        parse_key: impl FnOnce(&'a [u8]) -> K,
    ) -> Scan<Option<K>> {
        let first = cursor.at();
        let is_over = if position.0 == ROOT {
            !cursor.enter(b'{', b'}')?
        } else {
            cursor.follows(b'}')?
        };
        let key = if is_over {
            None
        } else {
            let key = cursor.key()?;
            cursor.token()?;
            Some(parse_key(key))
        };
        *position = self
            .add_node(*position, cursor.since(first), key)
            .unwrap_or(Position(DEAD_END));
        Ok(key)
    }

    /// Adds a successor with `text` to the node at `position`; `None` where a limit does not allow
    /// it.
    fn add_node(&mut self, position: Position, text: &[u8], key: Option<K>) -> Option<Position> {
        if position.0 == DEAD_END || self.nodes.len() >= MAX_NODES {
            return None;
        }
        let pattern = Pattern::of(text)?;
        let number = u16::try_from(self.nodes.len()).ok()?;
        let choices = &mut self.nodes.get_mut(usize::from(position.0))?.next;
        *choices.iter_mut().find(|choice| **choice == ROOT)? = number;
        let next = [ROOT; MAX_SUCCESSORS];
        self.nodes.push(Node { pattern, key, next });
        Some(Position(number))
    }
}

#[cfg(test)]
mod tests {
    use super::super::json::Stop;
    use super::*;

    /// The keys of the object at `at`, and what is behind it; each value is a scalar.
    fn keys<'a>(predictor: &mut KeyPredictor<&'a str>, text: &'a [u8]) -> Scan<(Vec<&'a str>, usize)> {
        let mut cursor = Cursor::new(text, 0);
        let (mut position, mut found) = (Position::ROOT, Vec::new());
        let parse_key = |key: &'a [u8]| std::str::from_utf8(key).unwrap();
        while let Some(key) = predictor.next_key(&mut cursor, &mut position, parse_key)? {
            found.push(key);
            cursor.scalar()?;
        }
        Ok((found, cursor.at()))
    }

    /// Bytes behind an object, as in a trace that goes on.
    const BEHIND: &str = ", {                                                            }";

    #[test]
    fn an_object_is_read_as_at_first_by_whatever_came_before() {
        let wide = "{\"ph\": \"X\",\n                                                    \"cat\": 1}";
        let objects = [
            (r#"{"ph": "X", "cat": "a", "ts": 1.5}"#, ["ph", "cat", "ts"].as_slice()),
            (r#"{"ph": "X", "cat": "b" , "ts":1.5 }"#, &["ph", "cat", "ts"]),
            (r#"{"ph": "X", "cat": "b", "ts2": 1.5}"#, &["ph", "cat", "ts2"]),
            (r#"{"ph": "X", "ca": "b"}"#, &["ph", "ca"]),
            ("{ }", &[]),
            ("{}", &[]),
            (
                r#"{"one of fifty letters, more than what is compared": 1, "ph": 2}"#,
                &["one of fifty letters, more than what is compared", "ph"],
            ),
            (wide, &["ph", "cat"]),
            (r#"{"1": 1, "x": 1}"#, &["1", "x"]),
            (r#"{"2": 1, "x": 1}"#, &["2", "x"]),
            (r#"{"3": 1, "x": 1}"#, &["3", "x"]),
        ];
        let objects = objects.map(|(text, keys)| (format!("{text}{BEHIND}"), keys));
        let mut predictor = KeyPredictor::default();
        for _ in 0..3 {
            for (text, expected) in &objects {
                let fresh = keys(&mut KeyPredictor::default(), text.as_bytes()).unwrap();
                assert_eq!(keys(&mut predictor, text.as_bytes()), Ok(fresh.clone()), "{text}");
                assert_eq!(
                    (&fresh.0[..], fresh.1),
                    (*expected, text.len() - BEHIND.len()),
                    "{text}"
                );
            }
        }
    }

    #[test]
    fn damage_is_found_where_it_is_behind_what_is_known() {
        let mut predictor = KeyPredictor::default();
        let whole = format!(r#"{{"ph": "X", "cat": "a"}}{BEHIND}"#);
        assert!(keys(&mut predictor, whole.as_bytes()).is_ok());
        for (text, stop) in [
            (r#"{"ph": "X" "cat": "a"}"#, Stop::Bad(11)),
            (r#"{"ph": "X", cat": "a"}"#, Stop::Bad(12)),
            (r#"{"ph": "X", "cat"= "a"}"#, Stop::Bad(17)),
            (r#"{"ph": "X", "cat": "#, Stop::More),
            (r#"{"ph": "X", "#, Stop::More),
        ] {
            assert_eq!(keys(&mut predictor, text.as_bytes()), Err(stop), "{text}");
        }
    }

    #[test]
    fn keys_without_end_take_a_bounded_place() {
        let mut predictor = KeyPredictor::default();
        for number in 0..2000 {
            let text = format!(r#"{{"ph": 1, "{number}": 2, "cat": 3}}{BEHIND}"#);
            let mut cursor = Cursor::new(text.as_bytes(), 0);
            let mut position = Position::ROOT;
            let mut count = 0;
            while predictor
                .next_key(&mut cursor, &mut position, |_| ())
                .unwrap()
                .is_some()
            {
                cursor.scalar().unwrap();
                count += 1;
            }
            assert_eq!(count, 3);
        }
        assert!(predictor.nodes.len() <= 16, "{}", predictor.nodes.len());
    }
}
