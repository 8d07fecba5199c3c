//! Which part of an answer is asked for, and how much of it: arguments that every tool has.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::answer::{Answer, Bounded};
use crate::error::ToolError;
use crate::shorten::shorten;

/// Bytes of an answer where nobody asks for more: about fifteen thousand tokens of a model.
pub const DEFAULT_ANSWER_BYTES: usize = 48 << 10;
/// Most bytes of an answer.
pub const MAX_ANSWER_BYTES: usize = 256 << 10;
/// Fewest bytes of an answer that can be asked for.
pub const MIN_ANSWER_BYTES: usize = 1 << 10;
/// Most names that the message lists where an answer has nothing at a place.
const MAX_NAMES: usize = 40;

/// Which part of an answer is asked for, and how much of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct View {
    /// Part of the answer to give, as a JSON Pointer such as "/rows": for what an earlier answer
    /// left out. Default: the whole answer.
    pub at: String,
    /// First element of the list at that place (of a text: first line) to give, counted from 0.
    /// Default: 0.
    pub from: usize,
    /// Most bytes of the answer. Default: 49152.
    #[schemars(range(min = MIN_ANSWER_BYTES, max = MAX_ANSWER_BYTES))]
    pub max_bytes: usize,
}

impl Default for View {
    fn default() -> Self {
        Self {
            at: String::new(),
            from: 0,
            max_bytes: DEFAULT_ANSWER_BYTES,
        }
    }
}

impl View {
    /// Takes the view out of the arguments of a call.
    pub(crate) fn take(arguments: &mut Map<String, Value>) -> Result<Self, ToolError> {
        let whole = |value: &Value| value.as_u64().and_then(|number| usize::try_from(number).ok());
        let mut view = Self::default();
        if let Some(at) = arguments.remove("at").filter(|at| !at.is_null()) {
            match at.as_str() {
                Some(pointer) if pointer.is_empty() || pointer.starts_with('/') => pointer.clone_into(&mut view.at),
                _ => return Err(ToolError::At(at.to_string())),
            }
        }
        if let Some(from) = arguments.remove("from").filter(|from| !from.is_null()) {
            view.from = whole(&from).ok_or_else(|| ToolError::From(from.to_string()))?;
        }
        if let Some(bytes) = arguments.remove("max_bytes").filter(|bytes| !bytes.is_null()) {
            let possible = whole(&bytes).filter(|bytes| (MIN_ANSWER_BYTES..=MAX_ANSWER_BYTES).contains(bytes));
            view.max_bytes = possible.ok_or_else(|| ToolError::MaxBytes(bytes.to_string()))?;
        }
        Ok(view)
    }

    /// The part of `answer` that is asked for, within its bound.
    pub fn of(&self, answer: Answer) -> Result<Bounded, ToolError> {
        match answer {
            Answer::Json(value) => {
                let part = self.part(value)?;
                shorten(&part, self)
            }
            Answer::Text(text) => self.lines(&text),
        }
    }

    fn part(&self, mut value: Value) -> Result<Value, ToolError> {
        let Some(part) = value.pointer_mut(&self.at) else {
            let names = value.as_object().into_iter().flat_map(Map::keys);
            return Err(ToolError::Nowhere {
                at: self.at.clone(),
                names: names.take(MAX_NAMES).cloned().collect(),
            });
        };
        let mut part = part.take();
        if self.from == 0 {
            return Ok(part);
        }
        let Value::Array(elements) = &mut part else {
            return Err(ToolError::NoPart(
                "\"from\" counts elements of a list, and there is none: name one with \"at\", such as \"/rows\"",
            ));
        };
        self.check(elements.len(), "the list")?;
        elements.drain(..self.from);
        Ok(part)
    }

    fn check(&self, count: usize, what: &str) -> Result<(), ToolError> {
        if self.from < count {
            return Ok(());
        }
        Err(ToolError::Behind {
            from: self.from,
            what: what.to_owned(),
            count,
        })
    }

    /// Whole lines of a text from `from` on; a line that is longer than the bound is cut.
    fn lines(&self, text: &str) -> Result<Bounded, ToolError> {
        if !self.at.is_empty() {
            return Err(ToolError::NoPart(
                "\"at\" is for answers in JSON, and this one is text: ask with \"from\", which counts its lines",
            ));
        }
        let all: Vec<&str> = text.split_inclusive('\n').collect();
        if self.from > 0 {
            self.check(all.len(), "the text")?;
        }
        let rest = all.get(self.from..).unwrap_or_default();
        let (mut kept, mut shown) = (String::new(), 0_usize);
        for line in rest {
            if kept.len() + line.len() > self.max_bytes {
                break;
            }
            kept.push_str(line);
            shown += 1;
        }
        let mut cut = None;
        if shown < rest.len() {
            let mut next = self.from + shown;
            let mut how = String::new();
            if shown == 0 {
                // One line alone is longer: its beginning is all that can be given of it.
                let line = rest.first().copied().unwrap_or_default();
                kept.push_str(beginning(line, self.max_bytes));
                next += 1;
                how.push_str(" Its first line is cut, which a larger max_bytes shows.");
            }
            cut = Some(format!(
                "Cut: lines {} to {} of {}.{how} Ask for the rest with from={next}.",
                self.from,
                next.saturating_sub(1),
                all.len()
            ));
        }
        Ok(Bounded { text: kept, cut })
    }
}

/// As much of a text as fits, whole characters.
pub(crate) fn beginning(text: &str, max_bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(max_bytes)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn taken(arguments: Value) -> Result<View, String> {
        let Value::Object(mut arguments) = arguments else {
            panic!("an object")
        };
        let view = View::take(&mut arguments).map_err(|error| error.to_string())?;
        assert!(arguments.keys().all(|name| name == "file"));
        Ok(view)
    }

    #[test]
    fn a_view_is_taken_out_of_the_arguments_and_what_is_wrong_is_told() {
        let view = taken(json!({"file": "a", "at": "/rows", "from": 3, "max_bytes": 2000})).unwrap();
        assert_eq!((view.at.as_str(), view.from, view.max_bytes), ("/rows", 3, 2000));
        assert_eq!(taken(json!({"at": null})).unwrap(), View::default());
        for (wrong, words) in [
            (json!({"at": "rows"}), "JSON Pointer"),
            (json!({"from": -1}), "at least 0"),
            (json!({"max_bytes": 10}), "from 1024 to 262144, not 10"),
            (json!({"max_bytes": "all"}), "not \"all\""),
        ] {
            let error = taken(wrong).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn the_schema_says_the_bounds_and_the_default() {
        let schema = schemars::schema_for!(View).to_value();
        let bytes = &schema["properties"]["max_bytes"];
        assert_eq!((&bytes["minimum"], &bytes["maximum"]), (&json!(1024), &json!(262_144)));
        let about = bytes["description"].as_str().unwrap();
        assert!(about.contains(&DEFAULT_ANSWER_BYTES.to_string()), "{about}");
    }

    fn view(at: &str, from: usize) -> View {
        View {
            at: at.to_owned(),
            from,
            ..View::default()
        }
    }

    #[test]
    fn a_part_of_an_answer_is_given_and_one_that_is_not_there_is_told() {
        let answer = || Answer::Json(json!({"rows": [{"name": "a"}, {"name": "b"}], "total": 2}));
        let given = |view: View| view.of(answer()).map(|bounded| bounded.text);
        assert_eq!(given(view("/rows", 1)).unwrap(), r#"[{"name":"b"}]"#);
        assert_eq!(given(view("/rows/0/name", 0)).unwrap(), r#""a""#);
        for (wrong, words) in [
            (view("/row", 0), "it has /rows, /total"),
            (view("/rows", 2), "the list has 2"),
            (view("", 1), "name one with \"at\""),
        ] {
            let error = given(wrong).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn a_text_is_cut_between_lines_and_goes_on_where_it_was_cut() {
        let lines: Vec<String> = (0..1000).map(|number| format!("line {number}\n")).collect();
        let text = lines.concat();
        let (mut read, mut from, mut answers) = (String::new(), 0, 0);
        loop {
            let asked = View {
                from,
                max_bytes: MIN_ANSWER_BYTES,
                ..View::default()
            };
            let part = asked.of(Answer::Text(text.clone())).unwrap();
            assert!(part.text.len() <= MIN_ANSWER_BYTES);
            read.push_str(&part.text);
            answers += 1;
            let Some(cut) = part.cut else { break };
            let (_, next) = cut.trim_end_matches('.').rsplit_once("from=").unwrap();
            from = next.parse().unwrap();
        }
        assert_eq!(read, text);
        assert!(answers > 5, "{answers}");
    }

    #[test]
    fn a_line_that_is_longer_than_the_bound_is_cut_between_characters() {
        let asked = View {
            max_bytes: 1025,
            ..View::default()
        };
        let part = asked.of(Answer::Text("ä".repeat(2000))).unwrap();
        assert_eq!(part.text, "ä".repeat(512));
        assert!(part.cut.unwrap().contains("larger max_bytes"));
    }
}
