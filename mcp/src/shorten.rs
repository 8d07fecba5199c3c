//! JSON within a bound of bytes that stays JSON: long lists end early, and where that is not enough
//! long texts and objects do. What was cut is told with its place.

use std::collections::VecDeque;
use std::io::{self, Write};

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::Value;

use crate::answer::Bounded;
use crate::error::ToolError;
use crate::view::{MAX_ANSWER_BYTES, View};

/// Elements of the longest list with which a cut answer is content: with fewer, texts are cut
/// first.
const ENOUGH_ELEMENTS: usize = 10;
/// Most places that are named where something was cut.
const MAX_PLACES: usize = 6;
/// Longest place that is named, in characters.
const MAX_PLACE_CHARS: usize = 200;
/// How long texts may be, the longest first: the next is tried where too few elements are left.
const TEXT_CHARS: [usize; 4] = [usize::MAX, 2_000, 300, 80];

/// How much of a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Limits {
    /// Elements of each list.
    elements: usize,
    /// Characters of each text.
    chars: usize,
    /// Entries of each object.
    entries: usize,
}

/// A value as the limits leave it.
struct Shortened<'a> {
    value: &'a Value,
    limits: Limits,
}

impl Serialize for Shortened<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let limits = self.limits;
        match self.value {
            Value::Array(all) => {
                let mut list = serializer.serialize_seq(None)?;
                for value in all.iter().take(limits.elements) {
                    list.serialize_element(&Shortened { value, limits })?;
                }
                list.end()
            }
            Value::Object(all) => {
                let mut object = serializer.serialize_map(None)?;
                for (name, value) in all.iter().take(limits.entries) {
                    object.serialize_entry(name, &Shortened { value, limits })?;
                }
                object.end()
            }
            Value::String(text) => match end_of(text, limits.chars) {
                Some(end) => {
                    let kept = text.get(..end).unwrap_or_default();
                    serializer.serialize_str(&format!("{kept}…"))
                }
                None => serializer.serialize_str(text),
            },
            plain => plain.serialize(serializer),
        }
    }
}

/// Where a text ends that may have so many characters; `None` where it has no more.
fn end_of(text: &str, chars: usize) -> Option<usize> {
    if text.len() <= chars {
        return None;
    }
    text.char_indices().nth(chars).map(|(end, _)| end)
}

/// Takes at most so many bytes, and counts nothing beyond.
struct Room(usize);

impl Write for Room {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn fits(value: &Value, limits: Limits, max_bytes: usize) -> bool {
    serde_json::to_writer(Room(max_bytes), &Shortened { value, limits }).is_ok()
}

/// `value`, which lies at the view's place of an answer, within the view's bound.
pub(crate) fn shorten(value: &Value, view: &View) -> Result<Bounded, ToolError> {
    let limits = limits(value, view.max_bytes);
    Ok(Bounded {
        text: serde_json::to_string(&Shortened { value, limits })?,
        cut: told(value, limits, view),
    })
}

/// The limits that leave the most of `value` within the bound.
fn limits(value: &Value, max_bytes: usize) -> Limits {
    let longest = longest_list(value);
    let mut best = Limits {
        elements: 0,
        chars: 0,
        entries: 0,
    };
    for chars in TEXT_CHARS {
        let with = |elements| Limits {
            elements,
            chars,
            entries: usize::MAX,
        };
        if let Some(elements) = most(longest, |elements| fits(value, with(elements), max_bytes)) {
            if best.entries == 0 || elements > best.elements {
                best = with(elements);
            }
            if elements >= longest.min(ENOUGH_ELEMENTS) {
                break;
            }
        }
    }
    if best.entries > 0 {
        return best;
    }
    // An object of very many entries, or very many objects within each other.
    let [.., chars] = TEXT_CHARS;
    let with = |count| Limits {
        elements: count,
        chars,
        entries: count,
    };
    let count = most(max_bytes, |count| fits(value, with(count), max_bytes));
    with(count.unwrap_or(0))
}

/// The most up to `up_to` that is possible; whatever is below is possible too. `None` where 0 is
/// not.
fn most(up_to: usize, is_possible: impl Fn(usize) -> bool) -> Option<usize> {
    if is_possible(up_to) {
        return Some(up_to);
    }
    let (mut possible, mut impossible) = (0, up_to);
    if up_to == 0 || !is_possible(0) {
        return None;
    }
    while impossible - possible > 1 {
        let middle = possible + (impossible - possible) / 2;
        if is_possible(middle) {
            possible = middle;
        } else {
            impossible = middle;
        }
    }
    Some(possible)
}

/// Elements of the longest list in it.
fn longest_list(value: &Value) -> usize {
    let mut longest = 0;
    let mut left = vec![value];
    while let Some(value) = left.pop() {
        match value {
            Value::Array(all) => {
                longest = longest.max(all.len());
                left.extend(all);
            }
            Value::Object(all) => left.extend(all.values()),
            _ => {}
        }
    }
    longest
}

/// What was cut, the outermost first, and how to ask for it; `None` where nothing was.
fn told(value: &Value, limits: Limits, view: &View) -> Option<String> {
    let mut sentences = Vec::new();
    let (mut further, mut are_texts_cut) = (0_usize, false);
    let mut left = VecDeque::from([(value, view.at.clone(), view.from)]);
    while let Some((value, place, from)) = left.pop_front() {
        let mut say = |sentence: String| {
            if sentences.len() < MAX_PLACES && place.chars().count() <= MAX_PLACE_CHARS {
                sentences.push(sentence);
            } else {
                further += 1;
            }
        };
        match value {
            Value::Array(all) => {
                if all.len() > limits.elements {
                    let (next, count) = (from + limits.elements, from + all.len());
                    say(format!(
                        "{} has {count} elements, of which {} are here: ask for more with at={place:?} from={next}",
                        named(&place),
                        shown(from, next)
                    ));
                }
                let kept = all.iter().take(limits.elements).enumerate();
                left.extend(kept.map(|(at, value)| (value, format!("{place}/{}", from + at), 0)));
            }
            Value::Object(all) => {
                if all.len() > limits.entries {
                    say(format!(
                        "{} has {} entries, of which the first {} are here: ask for one with at=\"{place}/NAME\"",
                        named(&place),
                        all.len(),
                        limits.entries
                    ));
                }
                let kept = all.iter().take(limits.entries);
                left.extend(kept.map(|(name, value)| (value, format!("{place}/{}", token(name)), 0)));
            }
            Value::String(text) => are_texts_cut |= end_of(text, limits.chars).is_some(),
            _ => {}
        }
    }
    if sentences.is_empty() && further == 0 && !are_texts_cut {
        return None;
    }
    let mut told = format!("Cut to {} bytes.", view.max_bytes);
    for sentence in sentences {
        told.push(' ');
        told.push_str(&sentence);
        told.push('.');
    }
    if further > 0 {
        let more = format!(" {further} lists or objects within these are cut too.");
        told.push_str(&more);
    }
    if are_texts_cut {
        let more = format!(
            " Texts of more than {} characters end with \"…\": ask for one with its place as at.",
            limits.chars
        );
        told.push_str(&more);
    }
    if view.max_bytes < MAX_ANSWER_BYTES {
        let more = format!(" Arguments that narrow the answer help, and max_bytes up to {MAX_ANSWER_BYTES}.");
        told.push_str(&more);
    }
    Some(told)
}

fn named(place: &str) -> &str {
    if place.is_empty() { "The answer" } else { place }
}

fn shown(from: usize, next: usize) -> String {
    match next.saturating_sub(from) {
        0 => "none".to_owned(),
        1 => format!("number {from}"),
        _ => format!("{from} to {}", next - 1),
    }
}

/// A name as a JSON Pointer has it.
fn token(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::answer::Answer;

    fn view(at: &str, from: usize, max_bytes: usize) -> View {
        View {
            at: at.to_owned(),
            from,
            max_bytes,
        }
    }

    fn rows(count: usize) -> Value {
        let rows: Vec<Value> = (0..count)
            .map(|number| json!({"name": format!("kernel {number}"), "places": [1, 2, 3]}))
            .collect();
        json!({"analysis": "idle", "rows": rows, "total": count})
    }

    #[test]
    fn what_fits_is_whole() {
        let value = rows(3);
        let whole = shorten(&value, &View::default()).unwrap();
        assert_eq!((whole.text, whole.cut), (value.to_string(), None));
    }

    #[test]
    fn a_long_list_ends_early_and_its_rest_can_be_asked_for() {
        let value = rows(5000);
        let (mut seen, mut at, mut from) = (Vec::new(), String::new(), 0);
        loop {
            let asked = view(&at, from, 8192);
            let part = asked.of(Answer::Json(value.clone())).unwrap();
            assert!(part.text.len() <= 8192);
            let json: Value = serde_json::from_str(&part.text).unwrap();
            let list = if at.is_empty() { &json["rows"] } else { &json };
            seen.extend(list.as_array().unwrap().clone());
            let Some(cut) = part.cut else { break };
            assert!(cut.contains("/rows has 5000 elements"), "{cut}");
            let next = cut.split_once("at=\"/rows\" from=").unwrap().1;
            at = "/rows".to_owned();
            from = next
                .split(|letter: char| !letter.is_ascii_digit())
                .next()
                .unwrap()
                .parse()
                .unwrap();
        }
        assert_eq!(&Value::Array(seen), &value["rows"]);
    }

    #[test]
    fn lists_within_elements_are_told_where_they_lie() {
        let inner: Vec<u64> = (0..1000).collect();
        let value = json!([{"a/b": inner}, {"a/b": inner}]);
        let part = view("", 0, 1024).of(Answer::Json(value)).unwrap();
        let cut = part.cut.unwrap();
        assert!(cut.contains("at=\"/0/a~1b\" from="), "{cut}");
    }

    #[test]
    fn long_texts_are_cut_where_lists_alone_do_not_help() {
        let value = json!({"rows": (0..20).map(|_| "ä".repeat(5000)).collect::<Vec<_>>()});
        let part = view("", 0, 16_384).of(Answer::Json(value)).unwrap();
        let json: Value = serde_json::from_str(&part.text).unwrap();
        assert_eq!(json["rows"].as_array().unwrap().len(), 20);
        let cut = part.cut.unwrap();
        assert!(cut.contains("Texts of more than 300 characters"), "{cut}");
    }

    #[test]
    fn an_object_of_very_many_entries_is_cut_too() {
        let value: Value = (0..10_000)
            .map(|number| (format!("key {number}"), json!(number)))
            .collect();
        let part = view("", 0, 2048).of(Answer::Json(value)).unwrap();
        assert!(part.text.len() <= 2048);
        let json: Value = serde_json::from_str(&part.text).unwrap();
        assert!(json.as_object().unwrap().len() > 50);
        assert!(part.cut.unwrap().contains("has 10000 entries"));
    }

    #[test]
    fn nothing_is_too_large_for_the_smallest_bound() {
        let mut deep = json!("x".repeat(100));
        for _ in 0..60 {
            deep = json!({"a long name of an entry": deep, "b": [1]});
        }
        for value in [deep, json!("x".repeat(100_000)), rows(100_000)] {
            let part = view("", 0, 1024).of(Answer::Json(value)).unwrap();
            assert!(part.text.len() <= 1024, "{}", part.text.len());
            assert!(part.cut.is_some_and(|cut| cut.len() < 3072));
        }
    }
}
