//! Reports of Nsight Systems of our own making: small, and whatever a test wants of them.

use crate::message::{Message, new, varint};

pub(crate) const MAGIC: &[u8] = b"NVIDIA Tegra Profiler Report ";
pub(crate) const END: &[u8] = b"U3w[END]";

/// `globalPid` of the process 100 of the first machine; of a thread with its number added.
pub(crate) const PROCESS: u64 = 1 << 48 | 100 << 24;

/// The thread 101 of it.
pub(crate) const THREAD: u64 = PROCESS + 101;

/// A report that is being written.
#[derive(Clone)]
pub(crate) struct Report {
    /// Which Nsight Systems recorded it.
    pub(crate) version: String,
    /// Fields of the session's state beside its times.
    pub(crate) state: Message,
    /// Fields of the header of events beside the counts.
    pub(crate) header: Message,
    /// Adds to the counts that the header states.
    pub(crate) more: u64,
    pub(crate) strings: Vec<String>,
    /// Fields of the storage of strings beside these.
    pub(crate) files: Message,
    pub(crate) threads: Message,
    pub(crate) system: Message,
    /// Messages of events, each of a chunk.
    pub(crate) chunks: Vec<Message>,
    /// Fields of the options beside what was asked to be recorded.
    pub(crate) options: Message,
    pub(crate) asked: Vec<u64>,
    /// Fields of what the user interface shows beside the version.
    pub(crate) shown: Message,
    pub(crate) sections: Vec<(&'static str, Vec<u8>)>,
    pub(crate) compression: &'static str,
}

impl Report {
    /// A report without events, of one second.
    pub(crate) fn new(strings: &[&str]) -> Self {
        Self {
            version: "2025.3.1.90-253135822126v0".to_owned(),
            state: new(),
            header: new(),
            more: 0,
            strings: strings.iter().map(|text| (*text).to_owned()).collect(),
            files: new(),
            threads: new(),
            system: new(),
            chunks: vec![new()],
            options: new(),
            asked: vec![12, 123, 127],
            shown: new(),
            sections: Vec::new(),
            compression: "lz4",
        }
    }

    /// Adds an event to the last chunk, with the number of the message in it.
    pub(crate) fn event(mut self, number: u64, body: &Message) -> Self {
        let event = new().number(1, 48).message(number, body);
        let last = self.chunks.pop().unwrap();
        self.chunks.push(last.message(1, &event));
        self
    }

    /// Adds work on device 0, with the number of the message of its own in it.
    pub(crate) fn work(self, number: u64, times: (i64, i64), own: &Message) -> Self {
        let body = new()
            .number(1, times.0.cast_unsigned())
            .number(2, times.1.cast_unsigned())
            .number(3, 9)
            .number(4, 0)
            .number(5, 1)
            .number(6, 7)
            .number(7, number - 98)
            .number(8, PROCESS);
        self.event(107, &body.message(number, own))
    }

    /// Adds a call of a class by the thread.
    pub(crate) fn call(self, class: u64, times: (i64, i64), name: u64) -> Self {
        let body = new()
            .number(1, times.0.cast_unsigned())
            .number(2, times.1.cast_unsigned())
            .number(3, 9)
            .number(6, class)
            .number(7, name)
            .number(13, THREAD);
        self.event(108, &body)
    }

    /// Adds a generic event.
    pub(crate) fn generic(mut self, kind: u64, time: u64, data: &[u8]) -> Self {
        let event = new().number(1, kind).number(2, time).bytes(3, data);
        let last = self.chunks.pop().unwrap();
        self.chunks.push(last.message(2, &event));
        self
    }

    /// Begins another chunk.
    pub(crate) fn next_chunk(mut self) -> Self {
        self.chunks.push(new());
        self
    }

    fn counted(&self, field: u8) -> u64 {
        let lists = self.chunks.iter().map(|chunk| entries(&chunk.0, field));
        lists.sum::<u64>() + self.more
    }

    /// The messages behind the magic of the section of events, and how long what comes before the
    /// strings is.
    fn raw(&self) -> (Vec<u8>, usize) {
        let state = self
            .state
            .clone()
            .number(17, 5_000_000_000)
            .number(18, 6_000_000_000)
            .number(99, 1);
        let header = self
            .header
            .clone()
            .number(1, self.counted(1))
            .number(3, u64::try_from(self.strings.len()).unwrap() + self.more)
            .number(5, entries(&self.threads.0, 1) + self.more)
            .text(9, self.compression)
            .number(15, self.counted(2));
        let mut raw = [state.delimited(), header.delimited()].concat();
        for events in &self.chunks {
            raw.extend(chunk(&events.delimited()));
        }
        let before = raw.len();
        let mut strings = new();
        for text in &self.strings {
            strings = strings.text(1, text);
        }
        strings.0.extend_from_slice(&self.files.0);
        raw.extend(chunk(&strings.delimited()));
        raw.extend(self.threads.delimited());
        raw.extend(self.system.delimited());
        (raw, before)
    }

    /// The bytes of the report's file, which is finished.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let (raw, strings) = self.raw();
        let offsets = new()
            .text(1, self.compression)
            .number(2, u64::try_from(strings).unwrap());
        let asked = self.asked.iter().fold(new(), |asked, kind| asked.number(1, *kind));
        let mut sections = vec![
            ("Analysis Options Data", self.options.clone().message(2, &asked).0),
            ("Raw Sampling Data", [b"QDTEXT00", raw.as_slice()].concat()),
            ("Sampling Data Offsets", offsets.0),
            ("UI Data", self.shown.clone().text(6, &self.version).0),
            ("A Section of Tomorrow", vec![0xFF; 9]),
        ];
        sections.extend(self.sections.iter().cloned());
        file(&sections)
    }
}

/// A sound report around the events of [`sample`](super::sample), whatever became of them.
pub(crate) fn around(events: Vec<u8>) -> Vec<u8> {
    let mut report = super::sample();
    report.chunks = vec![Message(events)];
    report.bytes()
}

/// A file of these sections.
pub(crate) fn file(sections: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = [MAGIC, b"1.\n"].concat();
    let mut list = new();
    for (name, content) in sections {
        let section = new()
            .text(1, name)
            .number(2, u64::try_from(bytes.len()).unwrap())
            .number(3, u64::try_from(content.len()).unwrap());
        list = list.message(1, &section);
        bytes.extend_from_slice(content);
    }
    finished(bytes, &list)
}

/// A file of sections that are written, with the list of them.
pub(crate) fn finished(mut bytes: Vec<u8>, list: &Message) -> Vec<u8> {
    let begin = u64::try_from(bytes.len()).unwrap();
    bytes.extend_from_slice(&list.0);
    bytes.extend_from_slice(&begin.to_le_bytes());
    bytes.extend_from_slice(END);
    bytes
}

/// A chunk: LZ4 without a match.
pub(crate) fn chunk(content: &[u8]) -> Vec<u8> {
    let block = literals(content);
    let lengths = [block.len(), content.len()].map(|length| varint(u64::try_from(length).unwrap()));
    [lengths.concat(), block].concat()
}

/// A block of LZ4 that is all literals.
pub(crate) fn literals(content: &[u8]) -> Vec<u8> {
    let mut block = Vec::new();
    match u8::try_from(content.len()) {
        Ok(length) if length < 15 => block.push(length << 4),
        _ => {
            block.push(0xF0);
            let mut rest = content.len() - 15;
            while rest >= 255 {
                block.push(255);
                rest -= 255;
            }
            block.push(u8::try_from(rest).unwrap());
        }
    }
    block.extend_from_slice(content);
    block
}

/// How many fields of that number a message of lengths has, up to where it is damaged.
fn entries(mut bytes: &[u8], field: u8) -> u64 {
    let mut found = 0;
    while let Some((key, rest)) = bytes.split_first() {
        let digits = rest.iter().take(9).take_while(|byte| **byte >= 0x80).count() + 1;
        let Some((length, behind)) = rest.split_at_checked(digits) else {
            break;
        };
        let length = length
            .iter()
            .rev()
            .fold(0_usize, |length, byte| length << 7 | usize::from(byte & 0x7f));
        found += u64::from(*key == field << 3 | 2);
        bytes = behind.get(length..).unwrap_or_default();
    }
    found
}
