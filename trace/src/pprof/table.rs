//! The tables of a profile as they lie in its message, and what comes of them.

use std::collections::HashMap;

use super::{Failure, ReadLimits};
use crate::redact;
use crate::wire::{Damage, Message, Value};
use flopwatch_model::{SampleKind, StackFrame, StackLabel, StackProfile, StackSample};

/// A message of a profile, in the tables that refer to each other by number.
#[derive(Debug, Default)]
pub(super) struct Table<'a> {
    kinds: Vec<(u64, u64)>,
    samples: Vec<Message<'a>>,
    locations: HashMap<u64, Message<'a>>,
    functions: HashMap<u64, Message<'a>>,
    texts: Vec<&'a [u8]>,
    taken_ns: u64,
    default_kind: u64,
}

impl<'a> Table<'a> {
    /// `Profile`: kinds of values 1, samples 2, locations 4, functions 5, texts 6, time 9, default
    /// kind 14.
    pub(super) fn read(message: Message<'a>, limits: &ReadLimits) -> Result<Self, Failure> {
        let mut table = Self::default();
        let mut count = 0_u64;
        for field in message.fields() {
            let (number, value) = field?;
            count += 1;
            if count > limits.max_table_rows {
                return Err(Failure::TooMany {
                    what: "entries of tables",
                    limit: limits.max_table_rows,
                });
            }
            let inside = value.message();
            match (number, inside) {
                (1, Some(kind)) => table.kinds.push((number_of(kind, 1)?, number_of(kind, 2)?)),
                (2, Some(sample)) => table.samples.push(sample),
                (4, Some(location)) => drop(table.locations.insert(number_of(location, 1)?, location)),
                (5, Some(function)) => drop(table.functions.insert(number_of(function, 1)?, function)),
                (6, Some(text)) => table.texts.push(text.bytes),
                (9, None) => table.taken_ns = value.number().unwrap_or(0),
                (14, None) => table.default_kind = value.number().unwrap_or(0),
                _ => {}
            }
        }
        if table.kinds.is_empty() {
            return Err(Failure::NotAProfile("it says no kind of values"));
        }
        if table.texts.first().is_none_or(|first| !first.is_empty()) {
            return Err(Failure::Missing("text"));
        }
        let (samples, limit) = (table.samples.len(), limits.max_events);
        if u64::try_from(samples).unwrap_or(u64::MAX) > limit {
            return Err(Failure::TooMany { what: "samples", limit });
        }
        Ok(table)
    }

    /// The profile, its texts redacted.
    pub(super) fn profile(&self, limits: &ReadLimits, redactions: &mut u64) -> Result<StackProfile, Failure> {
        let mut builder = ProfileBuilder {
            table: self,
            limits,
            profile: StackProfile {
                texts: vec![String::new()],
                taken_utc_ns: Some(self.taken_ns).filter(|ns| *ns > 0),
                ..StackProfile::default()
            },
            texts: HashMap::from([(0, 0)]),
            frames: HashMap::new(),
            locations: HashMap::new(),
            string_bytes: 0,
            stacked: 0,
            redactions: 0,
        };
        for (name, unit) in &self.kinds {
            let kind = SampleKind {
                name: builder.owned(*name)?,
                unit: builder.owned(*unit)?,
            };
            builder.profile.kinds.push(kind);
        }
        let default = self.kinds.iter().position(|(name, _)| *name == self.default_kind);
        builder.profile.default_kind = default
            .filter(|_| self.default_kind != 0)
            .and_then(|at| u32::try_from(at).ok());
        for sample in &self.samples {
            let sample = builder.sample(*sample)?;
            builder.profile.samples.push(sample);
        }
        *redactions = builder.redactions;
        Ok(builder.profile)
    }
}

/// A profile while its samples are read.
struct ProfileBuilder<'a> {
    table: &'a Table<'a>,
    limits: &'a ReadLimits,
    profile: StackProfile,
    /// New numbers of texts by their old ones.
    texts: HashMap<u64, u32>,
    frames: HashMap<StackFrame, u32>,
    /// Frames of each location that was seen.
    locations: HashMap<u64, Vec<u32>>,
    string_bytes: u64,
    /// Frames of all stacks.
    stacked: u64,
    redactions: u64,
}

impl ProfileBuilder<'_> {
    /// `Sample`: locations 1, values 2, labels 3.
    fn sample(&mut self, message: Message<'_>) -> Result<StackSample, Failure> {
        let mut sample = StackSample::default();
        let mut locations = Vec::new();
        for field in message.fields() {
            let (number, value) = field?;
            match number {
                1 => numbers(value, &mut locations)?,
                2 => {
                    let mut values = Vec::new();
                    numbers(value, &mut values)?;
                    sample.values.extend(values.into_iter().map(u64::cast_signed));
                }
                3 => {
                    if let Some(label) = value.message() {
                        let label = self.label(label)?;
                        sample.labels.push(label);
                    }
                }
                _ => {}
            }
        }
        if sample.values.len() != self.table.kinds.len() {
            return Err(Failure::Missing("value of a sample"));
        }
        for location in locations {
            if !self.locations.contains_key(&location) {
                let frames = self.location(location)?;
                self.locations.insert(location, frames);
            }
            let frames = self.locations.get(&location).map_or(&[][..], Vec::as_slice);
            self.stacked = self
                .stacked
                .saturating_add(u64::try_from(frames.len()).unwrap_or(u64::MAX));
            if self.stacked > self.limits.max_events {
                return Err(Failure::TooMany {
                    what: "frames of stacks",
                    limit: self.limits.max_events,
                });
            }
            sample.stack.extend(frames);
        }
        Ok(sample)
    }

    /// `Label`: name 1, text 2, number 3.
    fn label(&mut self, message: Message<'_>) -> Result<StackLabel, Failure> {
        let key = self.text(number_of(message, 1)?)?;
        let text = self.text(number_of(message, 2)?)?;
        let number = number_of(message, 3)?.cast_signed();
        Ok(StackLabel { key, text, number })
    }

    /// `Location`: address 3, lines 4; `Line`: function 1, line 2.
    fn location(&mut self, id: u64) -> Result<Vec<u32>, Failure> {
        let location = *self.table.locations.get(&id).ok_or(Failure::Missing("location"))?;
        let mut frames = Vec::new();
        let mut address = 0;
        for field in location.fields() {
            match field? {
                (3, value) => address = value.number().unwrap_or(0),
                (4, value) => {
                    if let Some(line) = value.message() {
                        let frame = self.line(line)?;
                        frames.push(self.frame(frame)?);
                    }
                }
                _ => {}
            }
        }
        if frames.is_empty() {
            let function = self.new_text(format!("{address:#x}"))?;
            let frame = StackFrame {
                function,
                ..StackFrame::default()
            };
            frames.push(self.frame(frame)?);
        }
        Ok(frames)
    }

    /// `Function`: name 2, name in the system 3, file 4.
    fn line(&mut self, line: Message<'_>) -> Result<StackFrame, Failure> {
        let id = number_of(line, 1)?;
        let function = *self.table.functions.get(&id).ok_or(Failure::Missing("function"))?;
        let (name, in_system) = (number_of(function, 2)?, number_of(function, 3)?);
        Ok(StackFrame {
            function: self.text(if name == 0 { in_system } else { name })?,
            file: self.text(number_of(function, 4)?)?,
            line: number_of(line, 2)?.cast_signed(),
        })
    }

    fn frame(&mut self, frame: StackFrame) -> Result<u32, Failure> {
        if let Some(known) = self.frames.get(&frame) {
            return Ok(*known);
        }
        let limit = u64::from(self.limits.max_rows);
        let next = u32::try_from(self.profile.frames.len()).unwrap_or(u32::MAX);
        if u64::from(next) >= limit {
            return Err(Failure::TooMany { what: "frames", limit });
        }
        self.profile.frames.push(frame);
        self.frames.insert(frame, next);
        Ok(next)
    }

    /// The new number of a text.
    fn text(&mut self, old: u64) -> Result<u32, Failure> {
        if let Some(known) = self.texts.get(&old) {
            return Ok(*known);
        }
        let text = self.owned(old)?;
        let new = self.add(text);
        self.texts.insert(old, new);
        Ok(new)
    }

    fn new_text(&mut self, text: String) -> Result<u32, Failure> {
        self.take(text.len())?;
        Ok(self.add(text))
    }

    fn add(&mut self, text: String) -> u32 {
        self.profile.texts.push(text);
        u32::try_from(self.profile.texts.len() - 1).unwrap_or(u32::MAX)
    }

    /// A text as it may be published.
    fn owned(&mut self, old: u64) -> Result<String, Failure> {
        let at = usize::try_from(old).unwrap_or(usize::MAX);
        let raw = *self.table.texts.get(at).ok_or(Failure::Missing("text"))?;
        self.take(raw.len())?;
        let text = String::from_utf8_lossy(raw);
        let (clean, count) = redact::redact(&text);
        self.redactions = self.redactions.saturating_add(count);
        Ok(clean.replace('\0', "\u{fffd}"))
    }

    fn take(&mut self, bytes: usize) -> Result<(), Failure> {
        let limit = self.limits.max_string_bytes;
        self.string_bytes = self
            .string_bytes
            .saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
        if self.string_bytes > limit {
            let what = "bytes of strings";
            return Err(Failure::TooMany { what, limit });
        }
        Ok(())
    }
}

/// A number of a message; 0 where it does not say it.
fn number_of(message: Message<'_>, wanted: u64) -> Result<u64, Damage> {
    let mut found = 0;
    for field in message.fields() {
        let (number, value) = field?;
        if number == wanted {
            found = value.number().unwrap_or(0);
        }
    }
    Ok(found)
}

/// Numbers of a field that may stand many to a value.
fn numbers(value: Value<'_>, found: &mut Vec<u64>) -> Result<(), Damage> {
    let Some(packed) = value.message() else {
        found.extend(value.number());
        return Ok(());
    };
    let (mut number, mut shift) = (0_u64, 0_u32);
    for (at, byte) in packed.bytes.iter().enumerate() {
        let damage = || Damage(packed.offset + at);
        let part = u64::from(byte & 0x7f);
        // The tenth byte has room for one bit.
        let fits = shift < 63 || (shift == 63 && part <= 1);
        number |= part.checked_shl(shift).filter(|_| fits).ok_or_else(damage)?;
        if *byte < 0x80 {
            found.push(number);
            (number, shift) = (0, 0);
        } else {
            shift += 7;
        }
    }
    if shift > 0 {
        return Err(Damage(packed.offset + packed.bytes.len()));
    }
    Ok(())
}
