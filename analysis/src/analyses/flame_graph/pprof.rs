//! A profile of pprof, compressed with gzip:
//! <https://github.com/google/pprof/blob/main/proto/profile.proto>.

use std::collections::HashMap;
use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use flopwatch_measures::flame::{Flame, FlameRow, FlameWeight};
use flopwatch_model::wire::write::Message;

/// Fields of `Profile`.
mod profile {
    pub(super) const SAMPLE_TYPE: u32 = 1;
    pub(super) const SAMPLE: u32 = 2;
    pub(super) const LOCATION: u32 = 4;
    pub(super) const FUNCTION: u32 = 5;
    pub(super) const STRING_TABLE: u32 = 6;
    pub(super) const DEFAULT_SAMPLE_TYPE: u32 = 14;
}

/// Fields of `ValueType`.
mod value_type {
    pub(super) const TYPE: u32 = 1;
    pub(super) const UNIT: u32 = 2;
}

/// Fields of `Sample`.
mod sample {
    pub(super) const LOCATION_ID: u32 = 1;
    pub(super) const VALUE: u32 = 2;
}

/// Fields of `Location`, and of the one `Line` in it.
mod location {
    pub(super) const ID: u32 = 1;
    pub(super) const LINE: u32 = 4;
    pub(super) const FUNCTION_ID: u32 = 1;
    pub(super) const NUMBER: u32 = 2;
}

/// Fields of `Function`. A system name is left out: where it equals the name, pprof takes the name
/// for one to be demangled, and drops the template's arguments that tell kernels apart.
mod function {
    pub(super) const ID: u32 = 1;
    pub(super) const NAME: u32 = 2;
    pub(super) const FILE_NAME: u32 = 4;
    pub(super) const START_LINE: u32 = 5;
}

/// What a stack counts and takes: how often, and how many ns.
pub(crate) type Values = [i64; 2];

/// Count and own ns of a row of one capture's flame graph.
pub(crate) fn before(row: &FlameRow) -> Values {
    let ([count, _], [ns, _]) = (row.count, row.own_ns);
    [signed(count), signed(ns)]
}

/// Count and own ns of a row of a difference: the second capture's less the first's.
pub(crate) fn difference(row: &FlameRow) -> Values {
    let ([count, more], [ns, longer]) = (row.count, row.own_ns);
    [signed(more) - signed(count), signed(longer) - signed(ns)]
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// The strings of a profile, each once; the first is empty.
#[derive(Default)]
struct Strings<'a> {
    list: Vec<&'a str>,
    known: HashMap<&'a str, u64>,
}

impl<'a> Strings<'a> {
    fn number(&mut self, text: &'a str) -> u64 {
        let next = u64::try_from(self.list.len()).unwrap_or(u64::MAX);
        *self.known.entry(text).or_insert_with(|| {
            self.list.push(text);
            next
        })
    }
}

/// Writes the stacks of `flame` with the values that `values` gives each.
pub(crate) fn write(
    flame: &Flame,
    weight: FlameWeight,
    values: impl Fn(&FlameRow) -> Values,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut out = GzEncoder::new(out, Compression::fast());
    let mut strings = Strings::default();
    strings.number("");
    // The last is the one that is meant where none is named.
    let kinds: &[(&str, &str)] = match weight {
        FlameWeight::Gpu => &[("gpu_operations", "count"), ("gpu_time", "nanoseconds")],
        FlameWeight::Cpu => &[("calls", "count"), ("cpu_time", "nanoseconds")],
        FlameWeight::Samples => &[("samples", "count")],
    };
    for (what, unit) in kinds.iter().copied() {
        let message = Message::new()
            .number(value_type::TYPE, strings.number(what))
            .number(value_type::UNIT, strings.number(unit));
        part(&mut out, profile::SAMPLE_TYPE, &message)?;
    }
    for (id, frame) in (1_u64..).zip(&flame.frames) {
        let name = strings.number(&frame.name);
        let mut function = Message::new().number(function::ID, id).number(function::NAME, name);
        let mut line = Message::new().number(location::FUNCTION_ID, id);
        if let Some((file, number)) = frame.source() {
            function = function
                .number(function::FILE_NAME, strings.number(file))
                .number(function::START_LINE, number.into());
            line = line.number(location::NUMBER, number.into());
        }
        part(&mut out, profile::FUNCTION, &function)?;
        let location = Message::new().number(location::ID, id).message(location::LINE, &line);
        part(&mut out, profile::LOCATION, &location)?;
    }
    flame.stacks(|stack, row| {
        let inside_out = stack.iter().rev().filter_map(|at| flame.rows.get(*at));
        let locations = inside_out.map(|row| u64::from(row.frame) + 1);
        let values = values(row).map(i64::cast_unsigned).into_iter().take(kinds.len());
        let message = Message::new()
            .packed(sample::LOCATION_ID, locations)
            .packed(sample::VALUE, values);
        part(&mut out, profile::SAMPLE, &message)
    })?;
    let default = strings.number(kinds.last().map_or("", |(what, _)| *what));
    for text in &strings.list {
        out.write_all(Message::new().text(profile::STRING_TABLE, text).encoded())?;
    }
    out.write_all(Message::new().number(profile::DEFAULT_SAMPLE_TYPE, default).encoded())?;
    out.finish()?;
    Ok(())
}

/// Writes a field of the profile: parts of a message that stand behind each other are one message.
fn part(out: &mut impl Write, field: u32, message: &Message) -> io::Result<()> {
    out.write_all(Message::new().message(field, message).encoded())
}
