//! When a recorder's file is read next, and by what it is read: one reading at a time, and a pause
//! after each.

use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, Instant};

use flopwatch_trace::recorder::{Extent, Failure, Heartbeat, NamedRanges};

/// Readings of which one looks at the whole table of names; each container has its own turn.
const MAX_TURNS: usize = 4;

/// What reads a file.
#[derive(Debug)]
pub(super) struct Reader {
    file: Arc<File>,
    /// None until its program has made the file's header.
    heartbeat: Option<Heartbeat>,
}

impl Reader {
    fn of(file: Arc<File>) -> Self {
        Self { file, heartbeat: None }
    }

    /// What has been counted since the file was made, by name. Whoever writes to the file decides
    /// how long that takes.
    pub(super) fn read(&mut self, extent: Extent) -> Result<Vec<NamedRanges>, Failure> {
        let heartbeat = match &mut self.heartbeat {
            Some(heartbeat) => heartbeat,
            none => none.insert(Heartbeat::open(&self.file)?),
        };
        heartbeat.read(&self.file, extent)
    }
}

/// The readings of one file.
#[derive(Debug)]
pub(super) struct FileReadings {
    file: Arc<File>,
    /// None while it reads.
    reader: Option<Reader>,
    /// No reading before that.
    rested: Instant,
    /// Readings so far, counted from the container's place among those of the node.
    readings: usize,
}

impl FileReadings {
    /// Of a file that is not read yet.
    pub(super) fn new(file: Arc<File>, place: usize) -> Self {
        Self {
            reader: Some(Reader::of(Arc::clone(&file))),
            file,
            rested: Instant::now(),
            readings: place,
        }
    }

    /// Since when it is to be read; none where it is not.
    pub(super) fn due(&self, now: Instant) -> Option<Instant> {
        (self.reader.is_some() && self.rested <= now).then_some(self.rested)
    }

    /// Whether it has been read, and is not to be read yet.
    #[cfg(test)]
    pub(super) fn rests(&self, now: Instant) -> bool {
        self.reader.is_some() && self.rested > now
    }

    /// The reader, and how much it is to look at; none while it reads.
    pub(super) fn take(&mut self, nothing_known: bool) -> Option<(Reader, Extent)> {
        let reader = self.reader.take()?;
        let whole = nothing_known || self.readings.is_multiple_of(MAX_TURNS);
        self.readings = self.readings.wrapping_add(1);
        Some((reader, if whole { Extent::Whole } else { Extent::Known }))
    }

    /// The reader has read; nothing is read for as long as `rest`.
    pub(super) fn give_back(&mut self, reader: Reader, rest: Duration) {
        self.reader = Some(reader);
        self.rested = Instant::now() + rest;
    }

    /// The reader was lost before it read.
    pub(super) fn begin_anew(&mut self) {
        self.reader = Some(Reader::of(Arc::clone(&self.file)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_once_at_a_time_and_rests_after_it() {
        let mut turn = FileReadings::new(Arc::new(tempfile::tempfile().unwrap()), 1);
        let begun = Instant::now();
        assert!(turn.due(begun).is_some());
        let (reader, extent) = turn.take(false).unwrap();
        assert_eq!(extent, Extent::Known);
        assert_eq!(turn.due(begun), None, "it is being read");
        assert!(turn.take(false).is_none());
        turn.give_back(reader, Duration::from_hours(1));
        assert_eq!(turn.due(Instant::now()), None, "it rests");
        let later = Instant::now() + Duration::from_hours(1);
        assert!(turn.due(later).is_some_and(|since| since > begun));
    }

    #[test]
    fn one_reading_of_four_is_of_the_whole_table_and_so_is_the_first() {
        let mut turn = FileReadings::new(Arc::new(tempfile::tempfile().unwrap()), 1);
        let extents: Vec<Extent> = (0..6)
            .map(|reading| {
                let (reader, extent) = turn.take(reading == 0).unwrap();
                turn.give_back(reader, Duration::ZERO);
                extent
            })
            .collect();
        let (whole, known) = (Extent::Whole, Extent::Known);
        assert_eq!(extents, [whole, known, known, whole, known, known]);
    }

    #[test]
    fn a_reader_that_was_lost_is_made_anew() {
        let mut turn = FileReadings::new(Arc::new(tempfile::tempfile().unwrap()), 0);
        drop(turn.take(true));
        turn.begin_anew();
        assert!(turn.due(Instant::now()).is_some());
    }
}
