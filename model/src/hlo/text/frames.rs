//! Lines of source that instructions come from: the tables `FileNames`, `FunctionNames`,
//! `FileLocations` and `StackFrames`.

use super::attributes::{inside, number, text};
use super::cursor::Cursor;
use crate::hlo::budget::Budget;
use crate::hlo::{Frames, ReadError};

/// Reads the tables that are next; older versions have none.
pub(super) fn read(cursor: &mut Cursor<'_>, budget: &mut Budget) -> Result<Frames, ReadError> {
    let mut frames = Frames::default();
    loop {
        let mut ahead = *cursor;
        let table = ahead.word();
        if !matches!(table, "FileNames" | "FunctionNames" | "FileLocations" | "StackFrames") {
            return Ok(frames);
        }
        *cursor = ahead;
        loop {
            let mut ahead = *cursor;
            let number_text = ahead.word();
            if number_text.is_empty() || !number_text.bytes().all(|byte| byte.is_ascii_digit()) {
                break;
            }
            *cursor = ahead;
            // Entries count from 1, and none is left out.
            let value = cursor.raw(b"\n").trim();
            let expected = match table {
                "FileNames" => frames.add_file(text(value, budget)?),
                "FunctionNames" => frames.add_function(text(value, budget)?),
                "FileLocations" => {
                    let [file, function, line] = figures(value, ["file_name_id", "function_name_id", "line"]);
                    frames.add_location(file, function, line)
                }
                _ => {
                    let [location, caller] = figures(value, ["file_location_id", "parent_frame_id"]);
                    // What is written is the caller's number and one, so that a frame without a
                    // caller has 1.
                    frames.add_call(location, caller.saturating_sub(1))
                }
            };
            budget.take(size_of::<String>())?;
            if u64::try_from(expected).is_ok_and(|expected| expected != number(number_text)) {
                return Err(cursor.fails("an entry of the tables of source lines is missing"));
            }
        }
    }
}

fn figures<const COUNT: usize>(value: &str, keys: [&str; COUNT]) -> [u64; COUNT] {
    let mut found = [0; COUNT];
    let mut pairs = Cursor::new(inside(value));
    while let Some((key, value)) = pairs.pair() {
        for (slot, _) in found.iter_mut().zip(keys).filter(|(_, wanted)| *wanted == key) {
            *slot = number(value);
        }
    }
    found
}
