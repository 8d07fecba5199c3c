//! Lines of source that instructions come from.

use super::ReadError;
use super::budget::Budget;
use crate::wire::Message;

/// Frames of a stack that are followed; a damaged message may name a frame as its own caller.
const MAX_FRAMES: usize = 64;

/// Stack frames of a module: texts and lines, each once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Frames {
    files: Vec<String>,
    functions: Vec<String>,
    locations: Vec<Location>,
    /// Location of each frame, and the frame that called it.
    calls: Vec<(u64, u64)>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Location {
    file: u64,
    function: u64,
    line: u64,
}

/// A line of source that was running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Source file of the frame.
    pub file: &'a str,
    /// The function in it; may be empty.
    pub function: &'a str,
    /// Its line, counted from 1.
    pub line: u64,
}

impl Frames {
    /// `StackFrameIndexProto`: files 1, functions 2, locations 3 (file 1, function 2, line 3),
    /// frames 4 (location 1, caller 2). All count from 1, and 0 is none.
    pub(super) fn read(message: Message<'_>, budget: &mut Budget) -> Result<Self, ReadError> {
        let mut frames = Self::default();
        for field in message.fields() {
            let (number, value) = field?;
            match (number, value.message()) {
                (1 | 2, Some(_)) => {
                    budget.one::<String>()?;
                    let text = budget.text(value)?;
                    let texts = if number == 1 {
                        &mut frames.files
                    } else {
                        &mut frames.functions
                    };
                    texts.push(text);
                }
                (3, Some(message)) => {
                    budget.one::<Location>()?;
                    let mut location = Location::default();
                    for field in message.fields() {
                        match field? {
                            (1, value) => location.file = value.number().unwrap_or(0),
                            (2, value) => location.function = value.number().unwrap_or(0),
                            (3, value) => location.line = value.number().unwrap_or(0),
                            _ => {}
                        }
                    }
                    frames.locations.push(location);
                }
                (4, Some(message)) => {
                    budget.one::<(u64, u64)>()?;
                    let mut frame = (0, 0);
                    for field in message.fields() {
                        match field? {
                            (1, value) => frame.0 = value.number().unwrap_or(0),
                            (2, value) => frame.1 = value.number().unwrap_or(0),
                            _ => {}
                        }
                    }
                    frames.calls.push(frame);
                }
                _ => {}
            }
        }
        Ok(frames)
    }

    /// Adds a file; gives its number.
    pub(super) fn add_file(&mut self, name: String) -> usize {
        self.files.push(name);
        self.files.len()
    }

    /// Adds a function; gives its number.
    pub(super) fn add_function(&mut self, name: String) -> usize {
        self.functions.push(name);
        self.functions.len()
    }

    /// Adds a line in a file and a function; gives its number.
    pub(super) fn add_location(&mut self, file: u64, function: u64, line: u64) -> usize {
        self.locations.push(Location { file, function, line });
        self.locations.len()
    }

    /// Adds a frame at a location with the frame that called it, 0 for none; gives its number.
    pub(super) fn add_call(&mut self, location: u64, caller: u64) -> usize {
        self.calls.push((location, caller));
        self.calls.len()
    }

    /// The stack of a frame, the innermost line first; empty of frame 0.
    pub fn stack(&self, frame: u64) -> impl Iterator<Item = Frame<'_>> {
        let caller = |frame: &u64| {
            let (_, caller) = nth(&self.calls, *frame)?;
            (*caller != *frame && *caller != 0).then_some(*caller)
        };
        let frames = std::iter::successors((frame != 0).then_some(frame), caller);
        frames.take(MAX_FRAMES).filter_map(|frame| {
            let (location, _) = nth(&self.calls, frame)?;
            let location = nth(&self.locations, *location)?;
            Some(Frame {
                file: nth(&self.files, location.file)?,
                function: nth(&self.functions, location.function).map_or("", String::as_str),
                line: location.line,
            })
        })
    }
}

/// The item at a place that counts from 1.
fn nth<T>(list: &[T], number: u64) -> Option<&T> {
    list.get(usize::try_from(number).ok()?.checked_sub(1)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_is_followed_from_its_innermost_line_and_ends_where_it_repeats() {
        let frames = Frames {
            files: vec!["model.py".to_owned(), "train.py".to_owned()],
            functions: vec!["forward".to_owned()],
            locations: vec![
                Location {
                    file: 1,
                    function: 1,
                    line: 7,
                },
                Location {
                    file: 2,
                    function: 0,
                    line: 3,
                },
            ],
            calls: vec![(2, 0), (1, 1), (1, 4), (2, 3), (9, 1)],
        };
        let lines = |frame| -> Vec<String> {
            let stack = frames.stack(frame);
            stack
                .map(|frame| format!("{}:{}{}", frame.file, frame.line, frame.function))
                .collect()
        };
        assert_eq!(lines(2), ["model.py:7forward", "train.py:3"]);
        assert_eq!(lines(0), Vec::<String>::new());
        assert_eq!(lines(3).len(), MAX_FRAMES);
        assert_eq!(lines(5), ["train.py:3"]);
    }
}
