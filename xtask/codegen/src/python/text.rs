//! Words in lines.

/// Longest line.
pub(super) const WIDTH: usize = 160;

/// A class's or a field's, whose lines are four columns in.
pub(super) fn docstring(about: Option<&str>) -> String {
    let Some(about) = about else { return String::new() };
    let about = about.replace('\\', "\\\\").replace("\"\"\"", "'''");
    let line = format!("    \"\"\"{about}\"\"\"\n");
    if width(&line) <= WIDTH {
        return line;
    }
    let lines = wrapped(&about, WIDTH.saturating_sub(7));
    format!("    \"\"\"{}\n    \"\"\"\n", lines.join("\n    "))
}

pub(super) fn comment(about: Option<&str>, indent: &str) -> String {
    let lines = wrapped(
        about.unwrap_or_default(),
        WIDTH.saturating_sub(width(indent)).saturating_sub(2),
    );
    let lines: Vec<String> = lines.iter().map(|line| format!("{indent}# {line}\n")).collect();
    lines.concat()
}

fn wrapped(text: &str, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(line).saturating_add(width(word)) < most => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Columns of a line.
pub(super) fn width(text: &str) -> usize {
    text.trim_end_matches('\n').chars().count()
}
