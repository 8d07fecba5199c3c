//! Writes JSON so that its differences read well: a value that fits into a line is written in one,
//! and any other has each member or element on a line of its own.

use serde_json::Value;

/// Longest line that holds more than one value, in characters.
const MAX_LINE_CHARS: usize = 140;
/// Spaces by which the members of a value are indented.
const INDENT: usize = 2;

/// `value` as JSON text, without a line end behind it; the same value gives the same text.
pub(super) fn text(value: &Value) -> String {
    let mut text = String::new();
    write(value, 0, 0, &mut text);
    text
}

/// Writes `value` behind `before` characters of its line, which begins with `indent` spaces.
fn write(value: &Value, indent: usize, before: usize, out: &mut String) {
    let line = in_one_line(value);
    let fits = indent + before + line.chars().count() <= MAX_LINE_CHARS;
    let inner = indent + INDENT;
    match value {
        Value::Object(map) if !fits && !map.is_empty() => {
            let members = map.iter().map(|(name, value)| (Some(name), value));
            write_all(('{', '}'), members, inner, out);
        }
        Value::Array(list) if !fits && !list.is_empty() => {
            write_all(('[', ']'), list.iter().map(|value| (None, value)), inner, out);
        }
        _ => out.push_str(&line),
    }
}

fn write_all<'a>(
    (open, close): (char, char),
    all: impl Iterator<Item = (Option<&'a String>, &'a Value)>,
    indent: usize,
    out: &mut String,
) {
    let mut separator = open;
    for (name, value) in all {
        out.extend([separator, '\n']);
        out.extend(std::iter::repeat_n(' ', indent));
        let name = name.map_or_else(String::new, |name| format!("{}: ", Value::from(name.as_str())));
        out.push_str(&name);
        write(value, indent, name.chars().count(), out);
        separator = ',';
    }
    out.push('\n');
    out.extend(std::iter::repeat_n(' ', indent.saturating_sub(INDENT)));
    out.push(close);
}

fn in_one_line(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let members = map.iter();
            let members =
                members.map(|(name, value)| format!("{}: {}", Value::from(name.as_str()), in_one_line(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
        Value::Array(list) => format!("[{}]", list.iter().map(in_one_line).collect::<Vec<_>>().join(", ")),
        scalar => scalar.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_fits_stands_in_one_line_and_the_value_is_the_same() {
        let long = "x".repeat(MAX_LINE_CHARS);
        let value =
            json!({"a": {"$ref": "#/b", "n": [1, "two", null]}, "empty": [{}, []], "long": [long, {"ä\n": 1.5}]});
        let text = text(&value);
        let expected = format!(
            "{{\n  \"a\": {{\"$ref\": \"#/b\", \"n\": [1, \"two\", null]}},\n  \"empty\": [{{}}, []],\n  \"long\": [\n    \
             \"{}\",\n    {{\"ä\\n\": 1.5}}\n  ]\n}}",
            "x".repeat(MAX_LINE_CHARS)
        );
        assert_eq!(text, expected);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }

    #[test]
    fn no_line_that_could_be_shorter_is_longer_than_the_width() {
        let list: Vec<Value> = (0..100).map(|n| json!({"number": n, "words": "y".repeat(n)})).collect();
        let text = text(&json!({"list": list}));
        assert!(text.lines().all(|line| line.chars().count() <= MAX_LINE_CHARS + 1));
        assert_eq!(text.lines().count(), 104);
    }
}
