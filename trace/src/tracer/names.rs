//! Names of events, which a file tells after the events that have them.

use hashbrown::HashMap;

use flopwatch_model::{Category, Events, NameDetail, NameId, count};
use flopwatch_tracer_file::record::RUNTIME;
use flopwatch_tracer_file::{Name, Origin};

use super::Failure;
use crate::cupti::{SYNCS, graph_name, overhead, unversioned};
use crate::demangle::demangled;
use crate::redact;

/// A program in a slot: its names of calls are of its own CUPTI.
pub(super) type Program = (usize, u32);

/// The program of a record.
pub(super) const fn program(origin: &Origin) -> Program {
    (origin.slot, origin.serial)
}

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// A number of the file's table; 0 for a name that was not to be had.
    File(u32),
    /// A text of ours.
    Fixed(&'static str),
    /// A function of the runtime or driver.
    Call(Program, u8, u32),
    /// A whole graph.
    Graph(u32),
    /// A kind of wait.
    Sync(u32),
    /// A kind of overhead.
    Overhead(u32),
}

/// The names of all categories.
#[derive(Debug, Default)]
pub(super) struct Names {
    known: HashMap<(Category, Key), NameId>,
    /// What each category's names stand for, in their order.
    keys: HashMap<Category, Vec<Key>>,
    /// Numbers of the file's table for functions.
    calls: HashMap<(Program, u8, u32), u32>,
    /// Texts of the file's table.
    texts: HashMap<u32, String>,
    /// Secrets that were replaced.
    pub(super) redactions: u64,
    /// Names that are shorter than the program's.
    pub(super) cut: u64,
    string_bytes: u64,
}

impl Names {
    /// The name of an event; `None` where there are too many.
    pub(super) fn id(&mut self, category: Category, key: Key) -> Option<NameId> {
        if let Some(known) = self.known.get(&(category, key)) {
            return Some(*known);
        }
        let keys = self.keys.entry(category).or_default();
        let next = NameId::from_index(keys.len())?;
        keys.push(key);
        self.known.insert((category, key), next);
        Some(next)
    }

    /// Notes what a function is called.
    pub(super) fn note(&mut self, program: Program, domain: u8, function: u32, name: u32) {
        self.calls.insert((program, domain, function), name);
    }

    /// Gives the events of a category their names. `read` reads a name of the file.
    pub(super) fn fill(
        &mut self,
        category: Category,
        events: &mut Events,
        limit: u64,
        mut read: impl FnMut(u32, &mut dyn FnMut(Option<Name<'_>>)) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut symbols = Vec::new();
        for key in self.keys.remove(&category).unwrap_or_default() {
            let mut symbol = String::new();
            let text = match key {
                Key::File(number) => {
                    let text = self.text(number, limit, &mut read)?;
                    match self.plain(&text, limit)? {
                        Some(plain) => {
                            symbol = text;
                            plain
                        }
                        None => text,
                    }
                }
                Key::Fixed(text) => text.to_owned(),
                Key::Call(program, domain, function) => {
                    let number = self.calls.get(&(program, domain, function)).copied().unwrap_or(0);
                    match self.text(number, limit, &mut read)? {
                        text if text.is_empty() => {
                            let of = if domain == RUNTIME { "runtime" } else { "driver" };
                            format!("[CUDA {of} call {function}]")
                        }
                        text => unversioned(text),
                    }
                }
                Key::Graph(graph) => graph_name(graph, 0),
                Key::Sync(kind) => {
                    let known = usize::try_from(kind).ok().and_then(|kind| SYNCS.get(kind));
                    known.map_or_else(|| format!("Sync type {kind}"), |name| (*name).to_owned())
                }
                Key::Overhead(kind) => overhead(kind).to_owned(),
            };
            events.names.push(text);
            symbols.push(symbol);
        }
        if symbols.iter().any(|symbol| !symbol.is_empty()) {
            events.name_details.insert(NameDetail::Mangled, symbols);
        }
        Ok(())
    }

    /// The name that a symbol stands for, fit to be published; `None` for a name that is no symbol.
    fn plain(&mut self, symbol: &str, limit: u64) -> Result<Option<String>, Failure> {
        let Some(plain) = demangled(symbol) else {
            return Ok(None);
        };
        self.hold(plain.len(), limit)?;
        let (clean, hits) = redact::redact(&plain);
        self.redactions = self.redactions.saturating_add(hits);
        Ok(Some(clean.into_owned()))
    }

    /// Fails where the strings that are kept are too many bytes with so many more.
    fn hold(&mut self, bytes: usize, limit: u64) -> Result<(), Failure> {
        self.string_bytes = self.string_bytes.saturating_add(count(bytes));
        if self.string_bytes > limit {
            let what = "bytes of strings";
            return Err(Failure::TooMany { what, limit });
        }
        Ok(())
    }

    /// The text of a number, fit to be published; empty for none.
    pub(super) fn text(
        &mut self,
        number: u32,
        limit: u64,
        read: &mut impl FnMut(u32, &mut dyn FnMut(Option<Name<'_>>)) -> Result<(), Failure>,
    ) -> Result<String, Failure> {
        if let Some(known) = self.texts.get(&number) {
            return Ok(known.clone());
        }
        let (mut raw, mut is_cut) = (Vec::new(), false);
        read(number, &mut |name| {
            if let Some(name) = name {
                raw.extend_from_slice(name.text);
                is_cut = name.is_cut;
            }
        })?;
        let text = String::from_utf8_lossy(&raw).replace('\0', "\u{fffd}");
        // A byte that is no text becomes three.
        self.hold(text.len(), limit)?;
        let (clean, hits) = redact::redact(&text);
        self.redactions = self.redactions.saturating_add(hits);
        self.cut += u64::from(is_cut);
        let clean = clean.into_owned();
        self.texts.insert(number, clean.clone());
        Ok(clean)
    }
}
