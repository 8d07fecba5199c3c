//! Turns CSV records into kernel profiles.

use std::collections::BTreeMap;
use std::sync::Arc;

use csv::{ReaderBuilder, StringRecord};
use hashbrown::HashMap;

use super::{Failure, header};
use crate::limits::ReadLimits;
use crate::redact;
use flopwatch_model::{
    Capture, Instances, KernelCode, KernelFunction, KernelProfile, LossReason, Metric, MetricValue, RooflineChart,
    RooflineValue, RuleKind, RuleResult, Scope, SourceFile, Speedup, ValueList,
};

/// The section of metrics that were asked for by their own names.
const BY_NAME: &str = "Command line profiler metrics";

/// Columns that say which launch a record is of.
const LAUNCH: [&str; 13] = [
    "ID",
    "Process ID",
    "Process Name",
    "Host Name",
    "Kernel Name",
    "Kernel Time",
    "Context",
    "Stream",
    "Block Size",
    "Grid Size",
    "Device",
    "CC",
    "Thread Name",
];

/// Profiles by number of their launch.
pub(super) struct Profiles<'a> {
    limits: &'a ReadLimits,
    launches: BTreeMap<u64, KernelProfile>,
    capture: Capture,
    metrics: u64,
    string_bytes: u64,
    /// Texts that were redacted before: every launch repeats the names of all metrics.
    known: HashMap<String, String>,
}

impl<'a> Profiles<'a> {
    pub(super) fn new(limits: &'a ReadLimits) -> Self {
        Self {
            limits,
            launches: BTreeMap::new(),
            capture: Capture::default(),
            metrics: 0,
            string_bytes: 0,
            known: HashMap::new(),
        }
    }

    /// Adds a page.
    pub(super) fn add(&mut self, text: &[u8]) -> Result<(), Failure> {
        let Some(begin) = header(text) else {
            return Err(Failure::NotAPage("has no header of a page of Nsight Compute"));
        };
        let page = text.get(begin..).unwrap_or_default();
        let mut reader = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(page);
        let mut record = StringRecord::new();
        let mut number = 0;
        let mut next = |record: &mut StringRecord| {
            let read = reader.read_record(record).map_err(|error| Failure::Record {
                record: number,
                reason: error.to_string(),
            });
            number += 1;
            read
        };
        next(&mut record)?;
        let columns: Vec<String> = record.iter().map(str::to_owned).collect();
        let is_details = columns.iter().any(|column| column == "Metric Value");
        if !is_details && !columns.iter().any(|column| column.contains("__")) {
            return Err(Failure::NotAPage("has no column of a metric"));
        }
        let mut units = Vec::new();
        if !is_details && next(&mut record)? {
            units = record.iter().map(str::to_owned).collect();
        }
        while next(&mut record)? {
            let at = Columns {
                columns: &columns,
                record: &record,
            };
            if is_details {
                self.detail(&at)?;
            } else {
                self.raw(&at, &units)?;
            }
        }
        Ok(())
    }

    /// A record of the details page: one metric, or the result of a rule.
    fn detail(&mut self, at: &Columns<'_>) -> Result<(), Failure> {
        let Some(id) = self.launch(at)? else { return Ok(()) };
        let metric = at.text("Metric Name");
        if metric.is_empty() {
            return self.rule(id, at);
        }
        let section = at.text("Section Name");
        let name = if section == BY_NAME {
            metric.to_owned()
        } else {
            format!("{section}: {metric}")
        };
        self.metric(id, &name, at.text("Metric Value"), at.text("Metric Unit"))
    }

    /// What a rule said of the launch `id`.
    fn rule(&mut self, id: u64, at: &Columns<'_>) -> Result<(), Failure> {
        let kind = match at.text("Rule Type") {
            "OPT" => RuleKind::Optimization,
            "WRN" => RuleKind::Warning,
            "ERR" => RuleKind::Error,
            _ => RuleKind::Information,
        };
        let percent = at.text("Estimated Speedup").replace(',', "").parse::<f64>().ok();
        let scope = match at.text("Estimated Speedup Type") {
            "local" => Scope::Local,
            "global" => Scope::Global,
            _ => Scope::Unknown,
        };
        let name = at.text("Rule Name");
        let text = at.text("Rule Description");
        if name.is_empty() && text.is_empty() {
            self.leave_out("records without a metric or a rule", 1);
            return Ok(());
        }
        self.count(1)?;
        let result = RuleResult {
            rule: self.publishable(name)?,
            name: self.publishable(name)?,
            section: self.publishable(at.text("Section Name"))?,
            kind,
            text: self.publishable(text)?,
            speedup: percent
                .filter(|percent| percent.is_finite())
                .map(|percent| Speedup { percent, scope }),
            ..RuleResult::default()
        };
        if let Some(profile) = self.launches.get_mut(&id) {
            profile.rules.push(result);
        }
        Ok(())
    }

    /// A record of the raw page: all metrics of a launch.
    fn raw(&mut self, at: &Columns<'_>, units: &[String]) -> Result<(), Failure> {
        let Some(id) = self.launch(at)? else { return Ok(()) };
        for (position, column) in at.columns.iter().enumerate() {
            let value = at.record.get(position).unwrap_or_default();
            if value.is_empty() || LAUNCH.contains(&column.as_str()) {
                continue;
            }
            let unit = units.get(position).map_or("", String::as_str);
            self.metric(id, column, value, unit)?;
        }
        let Some(profile) = self.launches.get_mut(&id) else {
            return Ok(());
        };
        // Older versions have sizes and device among the metrics only.
        let whole = |name: &str| {
            let value = profile.metrics.get(name)?.value.number()?;
            format!("{value}").parse::<u32>().ok()
        };
        let triple = |of: &str| ["x", "y", "z"].map(|axis| whole(&format!("launch__{of}_dim_{axis}")).unwrap_or(0));
        let (grid, block, device) = (triple("grid"), triple("block"), whole("launch__device_id"));
        if profile.grid == [0; 3] {
            profile.grid = grid;
        }
        if profile.block == [0; 3] {
            profile.block = block;
        }
        if at.text("Device").is_empty() {
            profile.device = device.unwrap_or(profile.device);
        }
        Ok(())
    }

    /// The launch of a record.
    fn launch(&mut self, at: &Columns<'_>) -> Result<Option<u64>, Failure> {
        let Ok(id) = at.text("ID").parse::<u64>() else {
            self.capture
                .losses
                .add(LossReason::Skipped, "records without a number of a launch", 1);
            return Ok(None);
        };
        if self.launches.contains_key(&id) {
            return Ok(Some(id));
        }
        let limit = u64::from(self.limits.max_rows);
        if u64::try_from(self.launches.len()).unwrap_or(u64::MAX) >= limit {
            return Err(Failure::TooMany {
                what: "launches",
                limit,
            });
        }
        let name = self.publishable(at.text("Kernel Name"))?;
        let number = |column: &str| at.text(column).replace(',', "").parse::<u64>().unwrap_or(0);
        let small = |column: &str| u32::try_from(number(column)).unwrap_or(0);
        let profile = KernelProfile {
            id,
            name,
            process: small("Process ID"),
            device: small("Device"),
            context: number("Context"),
            stream: number("Stream"),
            grid: triple(at.text("Grid Size")),
            block: triple(at.text("Block Size")),
            ..KernelProfile::default()
        };
        self.launches.insert(id, profile);
        Ok(Some(id))
    }

    fn metric(&mut self, id: u64, name: &str, value: &str, unit: &str) -> Result<(), Failure> {
        let Ok(number) = value.replace(',', "").parse::<f64>() else {
            self.leave_out("values that are no numbers", 1);
            return Ok(());
        };
        self.value(id, name, MetricValue::Number(number), unit)
    }

    /// Adds a metric of the launch `id`.
    pub(super) fn value(&mut self, id: u64, name: &str, value: MetricValue, unit: &str) -> Result<(), Failure> {
        let value = match value {
            MetricValue::Number(number) if !number.is_finite() => {
                self.leave_out("values that are no numbers", 1);
                return Ok(());
            }
            MetricValue::Text(text) => MetricValue::Text(self.publishable(&text)?),
            number => number,
        };
        self.count(1)?;
        let name = self.publishable(name)?;
        let unit = self.publishable(unit)?;
        if let Some(profile) = self.launches.get_mut(&id) {
            profile.metrics.insert(name, Metric { value, unit });
        }
        Ok(())
    }

    /// Counts values against the limit.
    fn count(&mut self, values: usize) -> Result<(), Failure> {
        let values = u64::try_from(values).unwrap_or(u64::MAX);
        self.metrics = self.metrics.saturating_add(values);
        if self.metrics > self.limits.max_events {
            let limit = self.limits.max_events;
            return Err(Failure::TooMany { what: "metrics", limit });
        }
        Ok(())
    }

    /// Code as it may be published.
    pub(super) fn code(&mut self, code: &KernelCode) -> Result<Arc<KernelCode>, Failure> {
        let files = code.files.iter().map(|file| {
            Ok(SourceFile {
                path: self.publishable(&file.path)?,
                text: self.publishable(&file.text)?,
            })
        });
        let files = files.collect::<Result<_, Failure>>()?;
        Ok(Arc::new(KernelCode {
            source: self.publishable(&code.source)?,
            ptx: self.publishable(&code.ptx)?,
            machine_code_bytes: code.machine_code_bytes,
            files,
        }))
    }

    /// A function as it may be published: names of files are texts of the capture.
    pub(super) fn function(&mut self, mut function: KernelFunction) -> Result<Arc<KernelFunction>, Failure> {
        self.count(function.lines.len().saturating_add(function.ptx_lines.len()))?;
        self.count_bytes(function.code.len())?;
        for file in &mut function.files {
            *file = self.publishable(file)?;
        }
        Ok(Arc::new(function))
    }

    /// Adds values of a metric for parts of the launch `id`.
    pub(super) fn instances(&mut self, id: u64, name: &str, found: Instances) -> Result<(), Failure> {
        self.count(found.values.len())?;
        let name = self.publishable(name)?;
        let found = Instances {
            keys: self.publishable_list(found.keys)?,
            values: self.publishable_list(found.values)?,
        };
        if let Some(profile) = self.launches.get_mut(&id) {
            profile.instances.insert(name, found);
        }
        Ok(())
    }

    fn publishable_list(&mut self, list: ValueList) -> Result<ValueList, Failure> {
        Ok(match list {
            ValueList::Texts(texts) => {
                let texts = texts.iter().map(|text| self.publishable(text));
                ValueList::Texts(texts.collect::<Result<_, Failure>>()?)
            }
            numbers => numbers,
        })
    }

    /// Counts what is not kept.
    pub(super) fn leave_out(&mut self, what: &str, count: u64) {
        self.capture.losses.add(LossReason::Unsupported, what, count);
    }

    /// Adds a launch of that name, numbered as the report's next one; gives its number.
    pub(super) fn add_launch(&mut self, name: &str, mut profile: KernelProfile) -> Result<u64, Failure> {
        let id = u64::try_from(self.launches.len()).unwrap_or(u64::MAX);
        let name = self.publishable(name)?;
        self.count(profile.rules.len() + profile.ranges.len() + profile.sections.len())?;
        for rule in &mut profile.rules {
            let texts = [
                &mut rule.rule,
                &mut rule.name,
                &mut rule.section,
                &mut rule.title,
                &mut rule.text,
            ];
            for text in texts {
                *text = self.publishable(text)?;
            }
            self.count(rule.metrics.len())?;
            for metric in &mut rule.metrics {
                metric.name = self.publishable(&metric.name)?;
                metric.info = self.publishable(&metric.info)?;
            }
        }
        for range in &mut profile.ranges {
            range.domain = self.publishable(&range.domain)?;
            range.name = self.publishable(&range.name)?;
        }
        for section in &mut profile.sections {
            *section = self.publishable(section)?;
        }
        for chart in &mut profile.rooflines {
            self.roofline(chart)?;
        }
        self.launches.insert(id, KernelProfile { id, name, ..profile });
        Ok(id)
    }

    /// A chart's names as they may be published.
    fn roofline(&mut self, chart: &mut RooflineChart) -> Result<(), Failure> {
        chart.section = self.publishable(&chart.section)?;
        for side in chart.roofs.iter_mut().chain(&mut chart.points) {
            self.count(1)?;
            side.label = self.publishable(&side.label)?;
            for value in [&mut side.work, &mut side.traffic] {
                match value {
                    RooflineValue::Constant(number) if !number.is_finite() => *number = 0.0,
                    RooflineValue::Constant(_) => {}
                    RooflineValue::Metric(name) => *name = self.publishable(name)?,
                    RooflineValue::PerCycle { metrics, clock } => {
                        for name in metrics.iter_mut().chain([clock]) {
                            *name = self.publishable(name)?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Counts bytes of texts and of machine code against the limit.
    fn count_bytes(&mut self, bytes: usize) -> Result<(), Failure> {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.string_bytes = self.string_bytes.saturating_add(bytes);
        if self.string_bytes > self.limits.max_string_bytes {
            let limit = self.limits.max_string_bytes;
            return Err(Failure::TooMany {
                what: "bytes of strings",
                limit,
            });
        }
        Ok(())
    }

    /// A text as it may be published, counted against the limit.
    fn publishable(&mut self, text: &str) -> Result<String, Failure> {
        self.count_bytes(text.len())?;
        if let Some(clean) = self.known.get(text) {
            return Ok(clean.clone());
        }
        let (clean, count) = redact::redact(text);
        self.capture.redactions = self.capture.redactions.saturating_add(count);
        let clean = clean.replace('\0', "\u{fffd}");
        self.known.insert(text.to_owned(), clean.clone());
        Ok(clean)
    }

    /// The capture; `version` is that of the profiler, where it is known.
    pub(super) fn finish(mut self, version: &str) -> Capture {
        "NVIDIA Nsight Compute".clone_into(&mut self.capture.source.tool);
        version.clone_into(&mut self.capture.source.tool_version);
        self.capture.profiles = self.launches.into_values().collect();
        self.capture
    }
}

/// A record with the names of its columns.
struct Columns<'a> {
    columns: &'a [String],
    record: &'a StringRecord,
}

impl<'a> Columns<'a> {
    fn text(&self, column: &str) -> &'a str {
        let position = self.columns.iter().position(|known| known == column);
        position
            .and_then(|position| self.record.get(position))
            .unwrap_or_default()
    }
}

/// `(256, 1, 1)`.
fn triple(text: &str) -> [u32; 3] {
    let mut sizes = [0; 3];
    let inside = text.trim_matches(|letter| matches!(letter, '(' | ')'));
    for (size, part) in sizes.iter_mut().zip(inside.split(',')) {
        *size = part.trim().parse().unwrap_or(0);
    }
    sizes
}
