//! The group `profiles` of a timeline file: launches that a kernel profiler measured, one per
//! element of its lists, and each metric's value with its launch and metric.

use std::borrow::Cow;
use std::sync::Arc;

use hashbrown::HashMap;
use hdf5::Group;
use serde::{Deserialize, Serialize};

use super::NONE_U32;
use super::read::{Failure, Reader, hard_group};
use super::write::{collect, group, json, list, strings};
use flopwatch_model::{
    Instances, KernelCode, KernelFunction, KernelProfile, Metric, MetricValue, OpenRange, RooflineChart, RuleResult,
    ValueList, index,
};

/// Writes the launches into `parent`, one per element of each list. Metrics are triples of launch,
/// metric and value, since launches need not have the same metrics.
pub(super) fn write(parent: &Group, profiles: &[KernelProfile]) -> hdf5::Result<()> {
    list(parent, "id", &collect(profiles, |profile| profile.id))?;
    strings(parent, "name", profiles.iter().map(|profile| profile.name.as_str()))?;
    list(parent, "process", &collect(profiles, |profile| profile.process))?;
    list(parent, "device", &collect(profiles, |profile| profile.device))?;
    list(parent, "context", &collect(profiles, |profile| profile.context))?;
    list(parent, "stream", &collect(profiles, |profile| profile.stream))?;
    for (at, axis) in ["x", "y", "z"].into_iter().enumerate() {
        let of = |dimensions: [u32; 3]| dimensions.get(at).copied().unwrap_or(0);
        let (grid, block) = (format!("grid_{axis}"), format!("block_{axis}"));
        list(parent, &grid, &collect(profiles, |profile| of(profile.grid)))?;
        list(parent, &block, &collect(profiles, |profile| of(profile.block)))?;
    }
    let all = || profiles.iter().flat_map(|profile| &profile.metrics);
    let mut metrics: Vec<(&str, &str)> = all()
        .map(|(name, metric)| (name.as_str(), metric.unit.as_str()))
        .collect();
    metrics.sort_unstable();
    metrics.dedup();
    let names = group(parent, "metrics")?;
    strings(&names, "name", metrics.iter().map(|(name, _)| *name))?;
    strings(&names, "unit", metrics.iter().map(|(_, unit)| *unit))?;
    let number = |(name, metric): (&String, &Metric)| {
        let at = metrics.binary_search(&(name, &metric.unit)).unwrap_or_default();
        u32::try_from(at).unwrap_or(u32::MAX)
    };
    // Per value: launch, metric, and what it is.
    let (mut numbers, mut integers, mut texts) = (Vec::new(), Vec::new(), Vec::new());
    for (launch, profile) in (0_u32..).zip(profiles) {
        for of in &profile.metrics {
            let key = (launch, number(of));
            match &of.1.value {
                MetricValue::Number(value) => numbers.push((key, *value)),
                MetricValue::Integer(value) => integers.push((key, *value)),
                MetricValue::Text(text) => texts.push((key, text.as_str())),
            }
        }
    }
    let values = group(parent, "values")?;
    write_keys(&values, &numbers)?;
    list(&values, "value", &collect(&numbers, |(_, value)| *value))?;
    let values = group(parent, "integers")?;
    write_keys(&values, &integers)?;
    list(&values, "value", &collect(&integers, |(_, value)| *value))?;
    let values = group(parent, "texts")?;
    write_keys(&values, &texts)?;
    strings(&values, "value", texts.iter().map(|(_, text)| *text))?;
    let details: Vec<String> = profiles.iter().map(details).collect::<hdf5::Result<_>>()?;
    strings(parent, "details", details.iter().map(String::as_str))?;
    write_codes(parent, profiles)?;
    write_functions(parent, profiles)?;
    write_instances(&group(parent, "instances")?, profiles)
}

/// Writes each module's code once, and per launch the index of its code.
fn write_codes(parent: &Group, profiles: &[KernelProfile]) -> hdf5::Result<()> {
    let mut codes: Vec<&Arc<KernelCode>> = Vec::new();
    let mut numbers = Vec::with_capacity(profiles.len());
    for profile in profiles {
        let Some(code) = &profile.code else {
            numbers.push(NONE_U32);
            continue;
        };
        // Launches of one module follow each other: the last is looked at first.
        let at = codes
            .iter()
            .rposition(|known| Arc::ptr_eq(known, code) || *known == code);
        let at = at.unwrap_or_else(|| {
            codes.push(code);
            codes.len() - 1
        });
        numbers.push(u32::try_from(at).unwrap_or(NONE_U32));
    }
    list(parent, "code", &numbers)?;
    let group = group(parent, "codes")?;
    strings(&group, "source", codes.iter().map(|code| code.source.as_str()))?;
    strings(&group, "ptx", codes.iter().map(|code| code.ptx.as_str()))?;
    let files: Vec<String> = codes
        .iter()
        .map(|code| json(&code.files))
        .collect::<hdf5::Result<_>>()?;
    strings(&group, "files", files.iter().map(String::as_str))?;
    list(
        &group,
        "machine_code_bytes",
        &collect(&codes, |code| code.machine_code_bytes),
    )
}

/// Writes each function once, as JSON, and per launch the index of its function.
fn write_functions(parent: &Group, profiles: &[KernelProfile]) -> hdf5::Result<()> {
    let mut known: HashMap<*const KernelFunction, u32> = HashMap::new();
    let (mut functions, mut numbers) = (Vec::new(), Vec::with_capacity(profiles.len()));
    for profile in profiles {
        let Some(function) = &profile.function else {
            numbers.push(NONE_U32);
            continue;
        };
        let next = u32::try_from(functions.len()).unwrap_or(NONE_U32);
        let number = *known.entry(Arc::as_ptr(function)).or_insert_with(|| {
            functions.push(function.as_ref());
            next
        });
        numbers.push(number);
    }
    let functions: Vec<String> = functions.into_iter().map(json).collect::<hdf5::Result<_>>()?;
    list(parent, "function", &numbers)?;
    strings(parent, "functions", functions.iter().map(String::as_str))
}

/// Properties of a launch that are no metrics, written as JSON.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Details<'a> {
    rules: Cow<'a, [RuleResult]>,
    ranges: Cow<'a, [OpenRange]>,
    sections: Cow<'a, [String]>,
    rooflines: Cow<'a, [RooflineChart]>,
}

fn details(profile: &KernelProfile) -> hdf5::Result<String> {
    if profile.rules.is_empty() && profile.ranges.is_empty() && profile.sections.is_empty() {
        return Ok(String::new());
    }
    json(&Details {
        rules: Cow::Borrowed(&profile.rules),
        ranges: Cow::Borrowed(&profile.ranges),
        sections: Cow::Borrowed(&profile.sections),
        rooflines: Cow::Borrowed(&profile.rooflines),
    })
}

/// Numbers that stand in the file for the type of a list of values.
const INTEGERS: u32 = 1;
const NUMBERS: u32 = 2;
const TEXTS: u32 = 3;

/// Values of all instances, in one list per type. Per metric of a launch, the file has the type and
/// the number of its keys and of its values; in the lists the keys come before the values.
#[derive(Default)]
struct Pools<'a> {
    integers: Vec<u64>,
    numbers: Vec<f64>,
    texts: Vec<&'a str>,
}

impl<'a> Pools<'a> {
    fn add(&mut self, list: &'a ValueList) -> u32 {
        match list {
            ValueList::Integers(list) => {
                self.integers.extend_from_slice(list);
                INTEGERS
            }
            ValueList::Numbers(list) => {
                self.numbers.extend_from_slice(list);
                NUMBERS
            }
            ValueList::Texts(list) => {
                self.texts.extend(list.iter().map(String::as_str));
                TEXTS
            }
        }
    }
}

fn write_instances(parent: &Group, profiles: &[KernelProfile]) -> hdf5::Result<()> {
    let lists = || {
        (0_u32..)
            .zip(profiles)
            .flat_map(|(launch, profile)| profile.instances.iter().map(move |of| (launch, of)))
    };
    let mut names: Vec<&str> = lists().map(|(_, (name, _))| name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    strings(parent, "name", names.iter().copied())?;
    let mut pools = Pools::default();
    let mut keys_of_values = Vec::new();
    let (mut keys, mut key_types, mut values, mut value_types) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let count = |list: &ValueList| u32::try_from(list.len()).unwrap_or(u32::MAX);
    for (launch, (name, instances)) in lists() {
        let metric = names.binary_search(&name.as_str()).unwrap_or_default();
        keys_of_values.push(((launch, u32::try_from(metric).unwrap_or(u32::MAX)), ()));
        keys.push(count(&instances.keys));
        key_types.push(pools.add(&instances.keys));
        values.push(count(&instances.values));
        value_types.push(pools.add(&instances.values));
    }
    write_keys(parent, &keys_of_values)?;
    list(parent, "keys", &keys)?;
    list(parent, "key_type", &key_types)?;
    list(parent, "values", &values)?;
    list(parent, "value_type", &value_types)?;
    list(parent, "integers", &pools.integers)?;
    list(parent, "numbers", &pools.numbers)?;
    strings(parent, "texts", pools.texts.into_iter())
}

/// Writes the launch's and the metric's index of each value.
fn write_keys<T>(values: &Group, of: &[((u32, u32), T)]) -> hdf5::Result<()> {
    list(values, "profile", &collect(of, |((launch, _), _)| *launch))?;
    list(values, "metric", &collect(of, |((_, metric), _)| *metric))
}

impl Reader<'_> {
    pub(super) fn profiles(&mut self, group: &Group) -> Result<Vec<KernelProfile>, Failure> {
        self.totals.profiles = u64::try_from(self.table(group, "name")?.rows()).unwrap_or(u64::MAX);
        if !self.needs.profiles {
            return Ok(Vec::new());
        }
        let names = self.strings(group, "name")?;
        let count = Some(names.len());
        let number = |name: &str| self.numbers::<u32>(group, name, count);
        let (process, device) = (number("process")?, number("device")?);
        let grid = [number("grid_x")?, number("grid_y")?, number("grid_z")?];
        let block = [number("block_x")?, number("block_y")?, number("block_z")?];
        let id: Vec<u64> = self.numbers(group, "id", count)?;
        let context: Vec<u64> = self.numbers(group, "context", count)?;
        let stream: Vec<u64> = self.numbers(group, "stream", count)?;
        let at =
            |columns: &[Vec<u32>; 3], at: usize| columns.each_ref().map(|column| column.get(at).copied().unwrap_or(0));
        let who = id.into_iter().zip(process).zip(device).zip(context).zip(stream);
        let mut profiles: Vec<KernelProfile> = names
            .into_iter()
            .zip(who)
            .enumerate()
            .map(
                |(position, (name, ((((id, process), device), context), stream)))| KernelProfile {
                    id,
                    name,
                    process,
                    device,
                    context,
                    stream,
                    grid: at(&grid, position),
                    block: at(&block, position),
                    ..KernelProfile::default()
                },
            )
            .collect();
        let list = hard_group(group, "metrics")?;
        let metric_names = self.strings(&list, "name")?;
        let units = self.strings(&list, "unit")?;
        let values = hard_group(group, "values")?;
        let numbers: Vec<f64> = self.numbers(&values, "value", None)?;
        let mut found = self.read_keys(&values, numbers.into_iter().map(MetricValue::Number).collect())?;
        let values = hard_group(group, "integers")?;
        let integers: Vec<u64> = self.numbers(&values, "value", None)?;
        found.extend(self.read_keys(&values, integers.into_iter().map(MetricValue::Integer).collect())?);
        let values = hard_group(group, "texts")?;
        let texts = self.strings(&values, "value")?;
        found.extend(self.read_keys(&values, texts.into_iter().map(MetricValue::Text).collect())?);
        for (launch, metric, value) in found {
            let (Some(profile), Some(name), Some(unit)) =
                (profiles.get_mut(launch), metric_names.get(metric), units.get(metric))
            else {
                return Err(Failure::Inconsistent(
                    "profiles: a value of a launch or metric that is not there".to_owned(),
                ));
            };
            let unit = unit.clone();
            profile.metrics.insert(name.clone(), Metric { value, unit });
        }
        let texts = self.strings(group, "details")?;
        for (profile, text) in profiles.iter_mut().zip(&texts).filter(|(_, text)| !text.is_empty()) {
            let details: Details<'_> = serde_json::from_str(text)
                .map_err(|error| Failure::Inconsistent(format!("profiles/details: {error}")))?;
            profile.rules = details.rules.into_owned();
            profile.ranges = details.ranges.into_owned();
            profile.sections = details.sections.into_owned();
            profile.rooflines = details.rooflines.into_owned();
        }
        self.codes(&hard_group(group, "codes")?, group, &mut profiles)?;
        self.functions(group, &mut profiles)?;
        self.instances(&hard_group(group, "instances")?, &mut profiles)?;
        Ok(profiles)
    }

    fn codes(&mut self, codes: &Group, group: &Group, profiles: &mut [KernelProfile]) -> Result<(), Failure> {
        let sources = self.strings(codes, "source")?;
        let ptx = self.strings(codes, "ptx")?;
        let sizes: Vec<u64> = self.numbers(codes, "machine_code_bytes", Some(sources.len()))?;
        let mut files = vec![Vec::new(); sources.len()];
        for (files, text) in files.iter_mut().zip(self.strings(codes, "files")?) {
            *files = serde_json::from_str(&text)
                .map_err(|error| Failure::Inconsistent(format!("profiles/codes/files: {error}")))?;
        }
        let all = sources.into_iter().zip(ptx).zip(sizes).zip(files);
        let all = all.map(|(((source, ptx), machine_code_bytes), files)| {
            Arc::new(KernelCode {
                source,
                ptx,
                machine_code_bytes,
                files,
            })
        });
        let all: Vec<Arc<KernelCode>> = all.collect();
        let numbers: Vec<u32> = self.numbers(group, "code", Some(profiles.len()))?;
        for (profile, number) in profiles
            .iter_mut()
            .zip(numbers)
            .filter(|(_, number)| *number != NONE_U32)
        {
            let code = all.get(index(number)).cloned();
            profile.code =
                Some(code.ok_or_else(|| Failure::Inconsistent("profiles: code that is not there".to_owned()))?);
        }
        Ok(())
    }

    fn functions(&mut self, group: &Group, profiles: &mut [KernelProfile]) -> Result<(), Failure> {
        let wrong = |reason: &dyn std::fmt::Display| Failure::Inconsistent(format!("profiles/functions: {reason}"));
        let texts = self.strings(group, "functions")?;
        let functions = texts.iter().map(|text| serde_json::from_str(text).map(Arc::new));
        let functions: Vec<Arc<KernelFunction>> = functions.collect::<Result<_, _>>().map_err(|error| wrong(&error))?;
        let numbers: Vec<u32> = self.numbers(group, "function", Some(profiles.len()))?;
        for (profile, number) in profiles
            .iter_mut()
            .zip(numbers)
            .filter(|(_, number)| *number != NONE_U32)
        {
            let function = functions.get(index(number)).cloned();
            profile.function = Some(function.ok_or_else(|| wrong(&"one that is not there"))?);
        }
        Ok(())
    }

    fn instances(&mut self, group: &Group, profiles: &mut [KernelProfile]) -> Result<(), Failure> {
        let names = self.strings(group, "name")?;
        let launches: Vec<u32> = self.numbers(group, "profile", None)?;
        let count = Some(launches.len());
        let metrics: Vec<u32> = self.numbers(group, "metric", count)?;
        let lengths = [
            self.numbers::<u32>(group, "keys", count)?,
            self.numbers(group, "values", count)?,
        ];
        let types = [
            self.numbers::<u32>(group, "key_type", count)?,
            self.numbers(group, "value_type", count)?,
        ];
        let integers: Vec<u64> = self.numbers(group, "integers", None)?;
        let numbers: Vec<f64> = self.numbers(group, "numbers", None)?;
        let texts = self.strings(group, "texts")?;
        self.within_limit(integers.len().saturating_add(numbers.len()), "values of profiles")?;
        let mut pools = (integers.into_iter(), numbers.into_iter(), texts.into_iter());
        let mut take = |which: usize, at: usize| {
            let length = lengths
                .get(which)
                .and_then(|lengths| lengths.get(at))
                .copied()
                .map(index)?;
            let list = match types.get(which).and_then(|types| types.get(at)).copied()? {
                INTEGERS => ValueList::Integers(pools.0.by_ref().take(length).collect()),
                NUMBERS => ValueList::Numbers(pools.1.by_ref().take(length).collect()),
                TEXTS => ValueList::Texts(pools.2.by_ref().take(length).collect()),
                _ => return None,
            };
            (list.len() == length).then_some(list)
        };
        for (at, (launch, metric)) in launches.into_iter().zip(metrics).enumerate() {
            let found = (
                profiles.get_mut(index(launch)),
                names.get(index(metric)),
                take(0, at),
                take(1, at),
            );
            let (Some(profile), Some(name), Some(keys), Some(values)) = found else {
                return Err(Failure::Inconsistent(
                    "profiles/instances: values of a launch or metric that is not there, or fewer than announced"
                        .to_owned(),
                ));
            };
            profile.instances.insert(name.clone(), Instances { keys, values });
        }
        Ok(())
    }

    /// Reads the indices of the launch and of the metric of each of `found`.
    fn read_keys(
        &mut self,
        values: &Group,
        found: Vec<MetricValue>,
    ) -> Result<Vec<(usize, usize, MetricValue)>, Failure> {
        let launch: Vec<u32> = self.numbers(values, "profile", Some(found.len()))?;
        let metric: Vec<u32> = self.numbers(values, "metric", Some(found.len()))?;
        let keys_of_values = launch.into_iter().map(index).zip(metric.into_iter().map(index));
        Ok(keys_of_values
            .zip(found)
            .map(|((launch, metric), value)| (launch, metric, value))
            .collect())
    }
}
