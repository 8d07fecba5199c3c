//! Names of events: interned while events are read, resolved from `StringIds` once all are known.

use hashbrown::{HashMap, HashSet};

use super::cpu::{DomainKey, Domains};
use super::tables::Table;
use super::{Failure, Reader};
use crate::hdf5_io::{StringBudget, TableError};
use crate::model::Category;
use crate::redact;

/// What names an event, as stored.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Text {
    /// An id of `StringIds`.
    Id(u64),
    /// The text itself.
    Inline(String),
    /// A text of ours.
    Fixed(&'static str),
}

/// A text, and for NVTX the domain that prefixes it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct NameKey {
    pub(super) text: Text,
    /// Machine, process and domain id.
    pub(super) domain: Option<DomainKey>,
}

impl From<Text> for NameKey {
    fn from(text: Text) -> Self {
        Self { text, domain: None }
    }
}

/// The names of one category.
#[derive(Debug, Default)]
pub(super) struct Names {
    by_key: HashMap<NameKey, u32>,
    keys: Vec<NameKey>,
}

impl Names {
    /// The index of `key`, which is counted against the budget when it is new.
    fn intern(&mut self, table: &Table, key: NameKey, budget: &mut StringBudget) -> Result<u32, TableError> {
        if let Some(known) = self.by_key.get(&key) {
            return Ok(*known);
        }
        if let Text::Inline(text) = &key.text {
            budget.take(table.name(), text)?;
        }
        let next = u32::try_from(self.keys.len()).unwrap_or(u32::MAX);
        self.by_key.insert(key.clone(), next);
        self.keys.push(key);
        Ok(next)
    }
}

const STRINGS: &str = "StringIds";

impl Reader<'_> {
    /// The index of a name of `category`.
    pub(super) fn name(&mut self, table: &Table, category: Category, key: NameKey) -> Result<u32, Failure> {
        let names = self.names.entry(category).or_default();
        Ok(names.intern(table, key, &mut self.strings)?)
    }

    /// The strings of these ids; an id that the table lacks is missing. Nothing else of the table is kept.
    pub(super) fn strings_of(&mut self, wanted: &HashSet<u64>) -> Result<HashMap<u64, String>, Failure> {
        let mut found = HashMap::new();
        if wanted.is_empty() {
            return Ok(found);
        }
        let Some(table) = self.table(STRINGS)? else {
            return Err(Failure::NotAnExport(STRINGS));
        };
        for slab in table.slabs() {
            let ids: Vec<u64> = table.required("id", &slab)?;
            if !ids.iter().any(|id| wanted.contains(id)) {
                continue;
            }
            for (id, text) in ids.into_iter().zip(table.strings("value", &slab)?) {
                if wanted.contains(&id) {
                    self.strings.take(STRINGS, &text)?;
                    found.insert(id, text);
                }
            }
        }
        Ok(found)
    }

    /// Turns the interned keys into names, redacted.
    pub(super) fn resolve_names(&mut self, domains: &Domains) -> Result<(), Failure> {
        let names = std::mem::take(&mut self.names);
        let keys = names.values().flat_map(|names| names.keys.iter().map(|key| &key.text));
        let wanted = keys.chain(domains.values()).filter_map(|text| match text {
            Text::Id(id) => Some(*id),
            Text::Inline(_) | Text::Fixed(_) => None,
        });
        let wanted: HashSet<u64> = wanted.collect();
        let strings = self.strings_of(&wanted)?;
        let resolve = |text: &Text| match text {
            Text::Id(id) => strings
                .get(id)
                .cloned()
                .unwrap_or_else(|| format!("[string {id} missing]")),
            Text::Inline(text) => text.clone(),
            Text::Fixed(text) => (*text).to_owned(),
        };
        for (category, names) in names {
            let mut resolved = Vec::with_capacity(names.keys.len());
            for key in &names.keys {
                let text = resolve(&key.text);
                let text = if category == Category::CudaApi {
                    unversioned(text)
                } else {
                    text
                };
                let name = match key.domain.and_then(|domain| domains.get(&domain)) {
                    Some(domain) => format!("{}:{text}", resolve(domain)),
                    None => text,
                };
                resolved.push(self.publishable(&name));
            }
            if let Some(events) = self.capture.events.get_mut(&category) {
                events.names = resolved;
            }
        }
        Ok(())
    }

    /// `text` as it may be published: secrets replaced and counted, without NUL, which files cannot hold.
    pub(super) fn publishable(&mut self, text: &str) -> String {
        let (clean, count) = redact::redact(text);
        self.capture.redactions = self.capture.redactions.saturating_add(count);
        clean.replace('\0', "\u{fffd}")
    }
}

/// `cudaMemcpy_v3020` is CUPTI's name of `cudaMemcpy`: four digits say since which CUDA. `cuMemAlloc_v2` is a name of its own.
fn unversioned(mut name: String) -> String {
    let version = name
        .len()
        .checked_sub(4)
        .and_then(|at| Some((name.get(..at)?, name.get(at..)?)));
    if let Some((head, digits)) = version
        && let Some(function) = head.strip_suffix("_v")
        && digits.bytes().all(|digit| digit.is_ascii_digit())
    {
        name.truncate(function.len());
    }
    name
}
