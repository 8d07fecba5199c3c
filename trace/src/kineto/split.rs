//! Reads a stretch of events on all cores: cut at places where an event seems to begin, read in
//! parallel, then checked.

use rayon::prelude::*;

use super::part::{End, Part, next_event};

/// Bytes below which a piece is not worth a thread.
const MIN_PIECE_BYTES: usize = 128 << 10;

/// The parts of `text` in order, how much of it they took, and why that was all. `trusted` is that
/// of [`Part`] at its begin.
pub(super) fn read<'a>(text: &'a [u8], trusted: bool, is_whole: bool) -> (Vec<Part<'a>>, usize, End) {
    let pieces = (rayon::current_num_threads() * 4)
        .min(text.len() / MIN_PIECE_BYTES)
        .max(1);
    let mut begins = vec![0];
    for piece in 1..pieces {
        let last = begins.last().copied().unwrap_or(0);
        let begin = next_event(text, (text.len() / pieces * piece).max(last));
        if begin > last && begin < text.len() {
            begins.push(begin);
        }
    }
    let ends = begins.iter().copied().skip(1).chain([usize::MAX]);
    let ranges: Vec<(usize, usize)> = begins.iter().copied().zip(ends).collect();
    let read = |(from, until): (usize, usize), trusted: bool| {
        let mut part = Part::new(trusted);
        let (at, end) = part.read(text, from, until, is_whole);
        (from, until, part, at, end)
    };
    let guessed: Vec<_> = ranges
        .into_par_iter()
        .map(|range| read(range, trusted && range.0 == 0))
        .collect();
    // A guess may have been wrong: the text of a string can look like an event. A piece counts only
    // where the one before it really ended, so that the outcome is that of reading from front to
    // back.
    let mut parts: Vec<Part<'a>> = Vec::with_capacity(guessed.len());
    let mut at = 0;
    for guess in guessed {
        let (from, until, ..) = guess;
        if until <= at {
            continue;
        }
        let (_, _, part, reached, end) = if from == at {
            guess
        } else {
            read((at, until), parts.last().map_or(trusted, |part| part.trusted))
        };
        parts.push(part);
        at = reached;
        if end != End::Reached {
            return (parts, at, end);
        }
    }
    (parts, at, End::More)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_in_parallel_are_what_one_reading_gives() {
        let mut text = Vec::new();
        for at in 0..12_000 {
            // A string that looks like the begin of an event, and a list of objects inside an
            // event.
            let decoy = r#"x\", {\"ph\": \"X\", "#;
            text.extend_from_slice(
                format!(
                    "{{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"{decoy}\", \"ts\": {at}, \"args\": {{\"a\": [0, {{\"ph\": 1}}, {{\"name\": 2}}]}}}},\n"
                )
                .as_bytes(),
            );
        }
        let count = |parts: &[Part<'_>]| -> usize {
            let columns = parts.iter().flat_map(|part| part.columns.values());
            columns.map(|columns| columns.events.len()).sum()
        };
        let mut whole = Part::new(true);
        let alone = whole.read(&text, 0, usize::MAX, true);
        let (parts, at, end) = read(&text, true, true);
        assert!(text.len() > MIN_PIECE_BYTES * 4 && parts.len() > 1);
        assert_eq!((at, end), alone);
        assert_eq!(count(&parts), 12_000);
        assert_eq!(count(&[whole]), 12_000);
        for part in &parts {
            assert_eq!(part.losses.list(), []);
        }
    }
}
