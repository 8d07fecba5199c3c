//! Which member of an object comes next, by what came next before: most events of a trace have the same members in the same order
//! and with the same spaces, so that one comparison stands for a comma, a key, a colon and the search for what the key means.

use super::json::{Cursor, Scan};

/// Bytes of the longest text that is compared: a comma, a new line with its indentation, a key, a colon.
const LONGEST: usize = 48;

/// Members that may come next behind one; a further one is read as if it had not been seen.
const CHOICES: usize = 4;

/// Steps that are kept, so that a trace whose keys all differ costs little.
const MOST: usize = 512;

/// The begin of an object.
const BEGIN: u16 = 0;
/// Behind a member that no step leads to.
const LOST: u16 = 1;

/// So many bytes as a processor compares at once, a few times.
type Words = [u64; LONGEST / 8];

/// A text to compare with.
#[derive(Debug, Clone, Copy, Default)]
struct Pattern {
    words: Words,
    /// Which bits of the words belong to the text.
    masks: Words,
    length: usize,
}

impl Pattern {
    /// `None` where the text is too long.
    fn of(text: &[u8]) -> Option<Self> {
        let (mut padded, mut mask) = ([0; LONGEST], [0; LONGEST]);
        padded.get_mut(..text.len())?.copy_from_slice(text);
        mask.get_mut(..text.len())?.fill(u8::MAX);
        Some(Self {
            words: words(&padded),
            masks: words(&mask),
            length: text.len(),
        })
    }

    /// Whether `bytes` begin with the text. All of it is compared: that takes less time than to find out how much there is.
    #[inline]
    fn begins(&self, bytes: &Words) -> bool {
        let both = bytes.iter().zip(&self.words).zip(&self.masks);
        both.fold(0, |differs, ((byte, word), mask)| differs | ((byte ^ word) & mask)) == 0
    }
}

#[inline]
fn words(bytes: &[u8; LONGEST]) -> Words {
    let (words, _) = bytes.as_chunks::<8>();
    let mut found = Words::default();
    for (found, word) in found.iter_mut().zip(words) {
        *found = u64::from_le_bytes(*word);
    }
    found
}

/// What came behind a member once.
#[derive(Debug, Clone, Copy)]
struct Step<K> {
    pattern: Pattern,
    /// What the key means; `None` where the object ended.
    key: Option<K>,
    /// The steps that came next, in the order in which they were first seen; [`BEGIN`] for none.
    next: [u16; CHOICES],
}

/// How far a reader is in an object: the step that it took last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place(u16);

impl Place {
    /// Before the object.
    pub(super) const BEGIN: Self = Self(BEGIN);
}

/// The ways through objects of one kind that were seen.
#[derive(Debug)]
pub(super) struct Guide<K> {
    steps: Vec<Step<K>>,
}

impl<K> Default for Guide<K> {
    fn default() -> Self {
        let step = || Step {
            pattern: Pattern::default(),
            key: None,
            next: [BEGIN; CHOICES],
        };
        // The begin, and where one is lost.
        Self {
            steps: vec![step(), step()],
        }
    }
}

impl<K: Copy> Guide<K> {
    /// Steps from `place` to the value of the next member, whose key `meaning` explains; behind the object, with `None`, where there
    /// is none.
    #[inline]
    pub(super) fn member<'a>(
        &mut self,
        cursor: &mut Cursor<'a>,
        place: &mut Place,
        meaning: impl FnOnce(&'a [u8]) -> K,
    ) -> Scan<Option<K>> {
        if let Some((next, length, key)) = self.known(cursor, *place) {
            cursor.advance(length);
            *place = next;
            return Ok(key);
        }
        self.unknown(cursor, place, meaning)
    }

    #[inline]
    fn known(&self, cursor: &Cursor<'_>, place: Place) -> Option<(Place, usize, Option<K>)> {
        let ahead = words(cursor.ahead()?);
        let step = self.steps.get(usize::from(place.0))?;
        for next in step.next {
            if next == BEGIN {
                return None;
            }
            let step = self.steps.get(usize::from(next))?;
            if step.pattern.begins(&ahead) {
                return Some((Place(next), step.pattern.length, step.key));
            }
        }
        None
    }

    /// Reads the next member as JSON is read, and keeps what it looks like.
    fn unknown<'a>(
        &mut self,
        cursor: &mut Cursor<'a>,
        place: &mut Place,
        meaning: impl FnOnce(&'a [u8]) -> K,
    ) -> Scan<Option<K>> {
        let first = cursor.at();
        let is_over = if place.0 == BEGIN {
            !cursor.enter(b'{', b'}')?
        } else {
            cursor.follows(b'}')?
        };
        let key = if is_over {
            None
        } else {
            let key = cursor.key()?;
            cursor.token()?;
            Some(meaning(key))
        };
        *place = self.learn(*place, cursor.since(first), key).unwrap_or(Place(LOST));
        Ok(key)
    }

    /// The new step from `place` by `text`; `None` where there is no room for it.
    fn learn(&mut self, place: Place, text: &[u8], key: Option<K>) -> Option<Place> {
        if place.0 == LOST || self.steps.len() >= MOST {
            return None;
        }
        let pattern = Pattern::of(text)?;
        let number = u16::try_from(self.steps.len()).ok()?;
        let choices = &mut self.steps.get_mut(usize::from(place.0))?.next;
        *choices.iter_mut().find(|choice| **choice == BEGIN)? = number;
        let next = [BEGIN; CHOICES];
        self.steps.push(Step { pattern, key, next });
        Some(Place(number))
    }
}

#[cfg(test)]
mod tests {
    use super::super::json::Stop;
    use super::*;

    /// The keys of the object at `at`, and what is behind it; each value is a scalar.
    fn keys<'a>(guide: &mut Guide<&'a str>, text: &'a [u8]) -> Scan<(Vec<&'a str>, usize)> {
        let mut cursor = Cursor::new(text, 0);
        let (mut place, mut found) = (Place::BEGIN, Vec::new());
        let meaning = |key: &'a [u8]| std::str::from_utf8(key).unwrap();
        while let Some(key) = guide.member(&mut cursor, &mut place, meaning)? {
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
        let mut guide = Guide::default();
        for _ in 0..3 {
            for (text, expected) in &objects {
                let fresh = keys(&mut Guide::default(), text.as_bytes()).unwrap();
                assert_eq!(keys(&mut guide, text.as_bytes()), Ok(fresh.clone()), "{text}");
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
        let mut guide = Guide::default();
        let whole = format!(r#"{{"ph": "X", "cat": "a"}}{BEHIND}"#);
        assert!(keys(&mut guide, whole.as_bytes()).is_ok());
        for (text, stop) in [
            (r#"{"ph": "X" "cat": "a"}"#, Stop::Bad(11)),
            (r#"{"ph": "X", cat": "a"}"#, Stop::Bad(12)),
            (r#"{"ph": "X", "cat"= "a"}"#, Stop::Bad(17)),
            (r#"{"ph": "X", "cat": "#, Stop::More),
            (r#"{"ph": "X", "#, Stop::More),
        ] {
            assert_eq!(keys(&mut guide, text.as_bytes()), Err(stop), "{text}");
        }
    }

    #[test]
    fn keys_without_end_take_a_bounded_place() {
        let mut guide = Guide::default();
        for number in 0..2000 {
            let text = format!(r#"{{"ph": 1, "{number}": 2, "cat": 3}}{BEHIND}"#);
            let mut cursor = Cursor::new(text.as_bytes(), 0);
            let mut place = Place::BEGIN;
            let mut count = 0;
            while guide.member(&mut cursor, &mut place, |_| ()).unwrap().is_some() {
                cursor.scalar().unwrap();
                count += 1;
            }
            assert_eq!(count, 3);
        }
        assert!(guide.steps.len() <= 16, "{}", guide.steps.len());
    }
}
