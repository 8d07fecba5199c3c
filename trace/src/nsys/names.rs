//! Names of events: interned while events are read, resolved from `StringIds` once all are known.

use std::borrow::Cow;
use std::hash::BuildHasher as _;

use hashbrown::{DefaultHashBuilder, HashMap, HashSet, HashTable};
use rayon::prelude::*;

use super::cpu::{Descriptions, DomainKey};
use super::keys::NameIds;
use super::tables::Table;
use super::{Failure, Reader};
use crate::cupti::unversioned;
use crate::hdf5_io::{StringBudget, TableError};
use crate::redact;
use flopwatch_model::{Category, ColumnId, NameDetail, Values, index};

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
    /// Numbers of keys, by what is in `keys`.
    by_key: HashTable<u32>,
    hasher: DefaultHashBuilder,
    keys: Vec<NameKey>,
    /// Ids of the details of each key.
    details: Vec<[u64; 2]>,
}

/// The details of names whose ids are known, in that order.
const DETAILS: [NameDetail; 2] = [NameDetail::Short, NameDetail::Mangled];

impl Names {
    /// The index of `key`, which is counted against the budget when it is new.
    fn intern(&mut self, table: &Table, named: NameIds, budget: &mut StringBudget) -> Result<u32, TableError> {
        let NameIds { key, details } = named;
        let (keys, hasher) = (&self.keys, &self.hasher);
        let hash = hasher.hash_one(&key);
        let known = |number: &u32| keys.get(index(*number));
        if let Some(number) = self.by_key.find(hash, |number| known(number) == Some(&key)) {
            return Ok(*number);
        }
        if let Text::Inline(text) = &key.text {
            budget.take(table.name(), text)?;
        }
        let next = u32::try_from(keys.len()).unwrap_or(u32::MAX);
        let again = |number: &u32| known(number).map_or(0, |key| hasher.hash_one(key));
        self.by_key.insert_unique(hash, next, again);
        self.keys.push(key);
        self.details.push(details);
        Ok(next)
    }
}

const STRINGS: &str = "StringIds";

impl Reader<'_> {
    /// The index of a name of `category`.
    pub(super) fn name(&mut self, table: &Table, category: Category, name: NameIds) -> Result<u32, Failure> {
        let known = self.names.entry(category).or_default();
        Ok(known.intern(table, name, &mut self.strings)?)
    }

    /// The strings of these ids; an id that the table lacks is missing. Nothing else of the table
    /// is kept.
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
    pub(super) fn resolve_names(&mut self, described: &Descriptions) -> Result<(), Failure> {
        let Descriptions {
            domains,
            range_categories,
        } = described;
        let names = std::mem::take(&mut self.names);
        let keys = names.values().flat_map(|names| names.keys.iter().map(|key| &key.text));
        let wanted = keys
            .chain(domains.values())
            .chain(range_categories.values())
            .filter_map(|text| match text {
                Text::Id(id) => Some(*id),
                Text::Inline(_) | Text::Fixed(_) => None,
            });
        let details = names.values().flat_map(|names| names.details.iter().flatten().copied());
        let wanted: HashSet<u64> = wanted.chain(details.filter(|id| *id != 0)).collect();
        let strings = self.strings_of(&wanted)?;
        let resolve = |text: &Text| match text {
            Text::Id(id) => strings
                .get(id)
                .cloned()
                .unwrap_or_else(|| format!("[string {id} missing]")),
            Text::Inline(text) => text.clone(),
            Text::Fixed(text) => (*text).to_owned(),
        };
        // What is replaced in a domain is counted in the names that begin with it.
        let clean = |text: &Text| redact::redact(&resolve(text)).0.replace('\0', "\u{fffd}");
        let clean_domains: HashMap<DomainKey, String> = domains.iter().map(|(key, text)| (*key, clean(text))).collect();
        for (category, names) in names {
            let name = |key: &NameKey| {
                let text = resolve(&key.text);
                let text = if category == Category::CudaApi {
                    unversioned(text)
                } else {
                    text
                };
                publishable(match key.domain.and_then(|domain| domains.get(&domain)) {
                    Some(domain) => format!("{}:{text}", resolve(domain)),
                    None => text,
                })
            };
            let found = names.keys.par_iter().with_min_len(256).map(name);
            let (resolved, redactions): (Vec<String>, Vec<u64>) = found.unzip();
            let redactions = redactions.into_iter().fold(0, u64::saturating_add);
            self.capture.redactions = self.capture.redactions.saturating_add(redactions);
            let domain_of = |key: &NameKey| key.domain.and_then(|domain| clean_domains.get(&domain)).cloned();
            let of_names = names.keys.iter().map(|key| domain_of(key).unwrap_or_default());
            let mut lists = vec![(NameDetail::Domain, of_names.collect::<Vec<String>>())];
            for (at, detail) in DETAILS.into_iter().enumerate() {
                lists.push((detail, self.details(at, &names, &resolved, &strings)));
            }
            lists.retain(|(_, list)| list.iter().any(|text| !text.is_empty()));
            if let Some(events) = self.capture.events.get_mut(&category) {
                events.names = resolved;
                events.name_details.extend(lists);
            }
            if category == Category::NvtxRange {
                self.name_range_categories(&names.keys, |key| range_categories.get(&key).map(resolve));
            }
        }
        Ok(())
    }

    /// The detail at `at` among the ids of `names`, one text per name, empty for none. `resolved`
    /// are the names themselves.
    fn details(
        &mut self,
        at: usize,
        names: &Names,
        resolved: &[String],
        strings: &HashMap<u64, String>,
    ) -> Vec<String> {
        let mut published: HashMap<u64, String> = HashMap::new();
        let mut list = Vec::with_capacity(resolved.len());
        for ((ids, key), name) in names.details.iter().zip(&names.keys).zip(resolved) {
            let id = ids.get(at).copied().filter(|id| *id != 0);
            let text = id.and_then(|id| Some((id, strings.get(&id)?)));
            list.push(match text {
                None => String::new(),
                // A function of C has one name for all.
                Some((id, _)) if key.text == Text::Id(id) => name.clone(),
                Some((id, text)) => {
                    let known = published.entry(id);
                    known.or_insert_with(|| self.publishable(text)).clone()
                }
            });
        }
        list
    }

    /// Turns the numbers of the categories of NVTX ranges, whose names are `keys`, into texts: the
    /// one that `name` gives, or the number itself.
    fn name_range_categories(&mut self, keys: &[NameKey], name: impl Fn((DomainKey, u32)) -> Option<String>) {
        let ranges = self.capture.events.get_mut(&Category::NvtxRange);
        let Some((events, mut column)) = ranges.and_then(|events| {
            let at = events
                .columns
                .iter()
                .position(|column| column.id == ColumnId::RangeCategory)?;
            let column = events.columns.remove(at);
            Some((events, column))
        }) else {
            return;
        };
        let Values::U32(numbers) = &mut column.values else {
            return;
        };
        if numbers.iter().all(|number| *number == 0) {
            return;
        }
        let mut known: HashMap<(Option<DomainKey>, u32), u32> = HashMap::new();
        let mut texts = Vec::new();
        for (number, of) in numbers.iter_mut().zip(&events.name) {
            if *number == 0 {
                continue;
            }
            let domain = keys.get(of.index()).and_then(|key| key.domain);
            *number = *known.entry((domain, *number)).or_insert_with(|| {
                let named = domain.and_then(|domain| name((domain, *number)));
                texts.push(
                    named
                        .filter(|name| !name.is_empty())
                        .unwrap_or_else(|| number.to_string()),
                );
                u32::try_from(texts.len()).unwrap_or(u32::MAX)
            });
        }
        column.texts.extend(texts.iter().map(|text| self.publishable(text)));
        if let Some(events) = self.capture.events.get_mut(&Category::NvtxRange) {
            events.columns.push(column);
        }
    }

    /// `text` as it may be published: secrets replaced and counted, without NUL, which files cannot
    /// hold.
    pub(super) fn publishable(&mut self, text: &str) -> String {
        let (clean, count) = publishable(text.to_owned());
        self.capture.redactions = self.capture.redactions.saturating_add(count);
        clean
    }
}

/// `text` as it may be published, and how many secrets were replaced.
fn publishable(text: String) -> (String, u64) {
    let (clean, count) = match redact::redact(&text) {
        (Cow::Borrowed(_), count) => (None, count),
        (Cow::Owned(clean), count) => (Some(clean), count),
    };
    let clean = clean.unwrap_or(text);
    if clean.contains('\0') {
        (clean.replace('\0', "\u{fffd}"), count)
    } else {
        (clean, count)
    }
}
