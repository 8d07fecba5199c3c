//! How much a trace holds, told by its lines: it is counted, not read, because nobody but a process
//! in a sandbox reads what a container wrote.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use super::budget::{SLICE_DURATION, Trace};

/// Bytes of a line that are looked at.
const MAX_LINE_BYTES: usize = 64;
/// How the library begins an event that takes time, or none: on a line of its own, with or without
/// other members behind.
const EVENTS: [&[u8]; 2] = [b"\"ph\": \"X\"", b"\"ph\": \"i\""];
/// How it begins the line with an event's start in us.
const START: &[u8] = b"\"ts\": ";
/// Bytes of text for each event, where no line begins as the library's do.
const EVENT_TEXT_BYTES: u64 = 128;
/// Moments whose events are counted: a hundred times those of a first window.
const MAX_MOMENTS: usize = 2048;

/// Counts what is written to it.
#[derive(Debug, Default)]
pub(super) struct Tally {
    bytes: u64,
    events: u64,
    /// Whether the next start is that of an event.
    in_event: bool,
    /// The first start and the last one, in us.
    starts: Option<(u64, u64)>,
    /// Events that began in each moment.
    moments: BTreeMap<u64, u64>,
    /// The begin of the line that is not at its end.
    line: Vec<u8>,
}

impl Tally {
    /// What was written.
    pub(super) fn trace(&self) -> Trace {
        let span = self.starts.map_or(0, |(first, last)| last.saturating_sub(first));
        let events = if self.events == 0 {
            self.bytes / EVENT_TEXT_BYTES
        } else {
            self.events
        };
        Trace {
            events,
            bytes: self.bytes,
            span: Duration::from_micros(span),
            busiest: self.moments.values().copied().max().unwrap_or_default(),
        }
    }

    fn end_line(&mut self) {
        let line = self.line.trim_ascii_start();
        if EVENTS.iter().any(|event| line.starts_with(event)) {
            self.events = self.events.saturating_add(1);
            self.in_event = true;
        } else if let Some(start) = line.strip_prefix(START).filter(|_| self.in_event) {
            self.in_event = false;
            let digits = start.iter().take_while(|byte| byte.is_ascii_digit());
            let digits: String = digits.copied().map(char::from).collect();
            if let Ok(start) = digits.parse::<u64>() {
                let (first, last) = self.starts.unwrap_or((start, start));
                self.starts = Some((first.min(start), last.max(start)));
                let moment = u128::from(start).checked_div(SLICE_DURATION.as_micros());
                let moment = moment.and_then(|moment| u64::try_from(moment).ok());
                self.count(moment.unwrap_or_default());
            }
        }
        self.line.clear();
    }
}

impl Tally {
    fn count(&mut self, moment: u64) {
        if self.moments.len() < MAX_MOMENTS || self.moments.contains_key(&moment) {
            let events = self.moments.entry(moment).or_default();
            *events = events.saturating_add(1);
        }
    }
}

impl Write for Tally {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        for part in text.split_inclusive(|byte| *byte == b'\n') {
            let left = MAX_LINE_BYTES.saturating_sub(self.line.len());
            self.line.extend(part.iter().take(left));
            if part.ends_with(b"\n") {
                self.end_line();
            }
        }
        let bytes = u64::try_from(text.len()).unwrap_or(u64::MAX);
        self.bytes = self.bytes.saturating_add(bytes);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As PyTorch 2.15 writes it.
    const NEW: &str = r#"
{
  "schemaVersion": 1,
  "traceEvents": [
  {
    "ph": "X",
    "cat": "cpu_op",
    "name": "aten::linear",
    "pid": 7,
    "tid": 7,
    "ts": 5000000100.250,
    "dur": 12.000
    , "args": {
      "External id": 1
    }
  },
  {
    "ph": "s",
    "id": 1,
    "pid": 7,
    "tid": 7,
    "ts": 1.000,
    "cat": "fwdbwd",
    "name": "fwdbwd"
  },
  {
    "ph": "X",
    "cat": "cpu_op",
    "name": "aten::t",
    "pid": 7,
    "tid": 7,
    "ts": 5000150100.750,
    "dur": 3.000
  },
  {
    "ph": "i",
    "s": "t",
    "name": "[memory]",
    "ts": 5000000200.000
  },
  {
    "ph": "M",
    "name": "process_name",
    "ts": 9000000000.000
  }
  ]
}"#;

    /// As PyTorch 2.1 writes it.
    const OLD: &str = r#"
  "traceEvents": [
  {
    "ph": "X", "cat": "cpu_op", "name": "aten::relu", "pid": 7, "tid": 7,
    "ts": 1640000000000000, "dur": 24,
    "args": {
      "External id": 2, "Trace iteration": 0
    }
  },
  {
    "name": "process_name", "ph": "M", "ts": 1640000000900000, "pid": 7, "tid": 0,
    "args": { "name": "python" }
  },
  {
    "ph": "X", "cat": "cpu_op", "name": "aten::clamp_min", "pid": 7, "tid": 7,
    "ts": 1640000000040000, "dur": 20,
    "args": {}
  }
"#;

    fn tally(text: &str, block: usize) -> Trace {
        let mut tally = Tally::default();
        for part in text.as_bytes().chunks(block) {
            tally.write_all(part).unwrap();
        }
        tally.trace()
    }

    #[test]
    fn events_and_the_time_between_them_are_counted_wherever_blocks_end() {
        let of = |text: &str, (events, busiest), micros| Trace {
            events,
            bytes: u64::try_from(text.len()).unwrap(),
            span: Duration::from_micros(micros),
            busiest,
        };
        for block in [1, 7, 4096] {
            assert_eq!(tally(NEW, block), of(NEW, (3, 2), 150_000), "{block}");
            assert_eq!(tally(OLD, block), of(OLD, (2, 1), 40_000), "{block}");
        }
    }

    #[test]
    fn a_text_whose_events_cannot_be_told_is_taken_for_many() {
        let text = "x".repeat(1 << 20);
        let found = tally(&text, 4096);
        assert_eq!((found.events, found.span), (8192, Duration::ZERO));
        assert_eq!(tally("", 1), Trace::default());
    }
}
