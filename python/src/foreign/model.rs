//! The event model on its way. Each type is taken apart by all of its fields, so that one that is
//! added to the model does not compile here before it goes over, too.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::sync::Arc;

use flopwatch_model::{
    Allocation, CallFrame, CallStack, CallStacks, Capture, Category, Column, ColumnId, CounterSeries, Device, Events,
    FocusMetric, Instances, InstructionText, KernelCode, KernelFunction, KernelProfile, LineStart, Loss, LossReason,
    Losses, MemoryKind, Metric, MetricValue, MigInstance, NameDetail, OpenRange, Program, PtxStart, RooflineChart,
    RooflineSide, RooflineValue, Row, RuleKind, RuleResult, SampleKind, Scope, Source as Origin, SourceFile,
    SourceLocation, Speedup, StackFrame, StackLabel, StackProfile, StackSample, Track, ValueList, Values, index,
};
use flopwatch_trace::OpenedFile;

use super::wire::{Source, Wire, put_length, take_length, wrong};

macro_rules! record {
    ($($name:ident { $($field:ident),+ })+) => {$(
        impl Wire for $name {
            fn put(&self, to: &mut impl Write) -> io::Result<()> {
                let Self { $($field),+ } = self;
                $($field.put(to)?;)+
                Ok(())
            }

            fn take(from: &mut Source<impl Read>) -> io::Result<Self> {
                Ok(Self { $($field: Wire::take(from)?),+ })
            }
        }
    )+};
}

/// Enums of words alone.
macro_rules! choice {
    ($($name:ident { $($variant:ident),+ })+) => {$(
        impl Wire for $name {
            fn put(&self, to: &mut impl Write) -> io::Result<()> {
                let word = match self {
                    $(Self::$variant => stringify!($variant),)+
                };
                word.to_owned().put(to)
            }

            fn take(from: &mut Source<impl Read>) -> io::Result<Self> {
                let word = String::take(from)?;
                $(if word == stringify!($variant) {
                    return Ok(Self::$variant);
                })+
                Err(wrong(concat!("no ", stringify!($name))))
            }
        }
    )+};
}

/// Enums whose variants hold a value.
macro_rules! either {
    ($($name:ident { $($tag:literal => $variant:ident),+ })+) => {$(
        impl Wire for $name {
            fn put(&self, to: &mut impl Write) -> io::Result<()> {
                match self {
                    $(Self::$variant(value) => {
                        u8::put(&$tag, to)?;
                        value.put(to)
                    })+
                }
            }

            fn take(from: &mut Source<impl Read>) -> io::Result<Self> {
                match u8::take(from)? {
                    $($tag => Wire::take(from).map(Self::$variant),)+
                    _ => Err(wrong(concat!("no ", stringify!($name)))),
                }
            }
        }
    )+};
}

record! {
    OpenedFile { session_id, capture }
    Capture {
        source, session_start_utc_ns, duration_ns, events, captured, rows, devices, counters, allocations, programs,
        profiles, stacks, call_stacks, losses, redactions
    }
    Origin { tool, tool_version, schema_version, capture_options }
    Device {
        id, name, compute_capability, multiprocessors, memory_bytes, peak_bandwidth, peak_flops, figures_from, mig
    }
    MigInstance { gpu_instance, compute_instance, uuid }
    Events { start_ns, duration_ns, row, lane, name, correlation, columns, names, name_details }
    Column { id, values, texts }
    Row { capture, machine, process, track, device, context, stream, thread, label }
    CounterSeries { source, device, metric, unit, t_ns, value }
    Allocation { t_ns, process, thread, correlation, device, kind, address, bytes, allocated, reserved }
    Program { name, id, proto }
    Loss { reason, what, count }
    StackProfile { kinds, default_kind, taken_utc_ns, texts, frames, samples }
    SampleKind { name, unit }
    StackFrame { function, file, line }
    StackSample { stack, values, labels }
    StackLabel { key, text, number }
    CallStacks { texts, frames, stacks }
    CallFrame { function, module }
    CallStack { caller, frame }
    Metric { value, unit }
    Instances { keys, values }
    RuleResult { rule, name, section, kind, title, text, speedup, metrics }
    Speedup { percent, scope }
    FocusMetric { name, value, info }
    OpenRange { domain, name, thread }
    RooflineChart { section, roofs, points }
    RooflineSide { label, work, traffic }
    KernelCode { source, ptx, machine_code_bytes, files }
    SourceFile { path, text }
    KernelFunction {
        address, bytes, architecture, code, files, lines, ptx_lines, instructions, not_disassembled
    }
    LineStart { offset_bytes, place, inlined }
    SourceLocation { file, line }
    PtxStart { offset_bytes, line }
    InstructionText { offset_bytes, text }
}

choice! {
    LossReason { Dropped, Truncated, Skipped, Unsupported, Idle, Inferred }
    RuleKind { Information, Optimization, Warning, Error }
    Scope { Unknown, Local, Global }
}

either! {
    Values { 0 => U32, 1 => U64 }
    ValueList { 0 => Integers, 1 => Numbers, 2 => Texts }
    MetricValue { 0 => Number, 1 => Integer, 2 => Text }
}

impl Wire for RooflineValue {
    fn put(&self, to: &mut impl Write) -> io::Result<()> {
        match self {
            Self::Constant(value) => {
                0_u8.put(to)?;
                value.put(to)
            }
            Self::Metric(name) => {
                1_u8.put(to)?;
                name.put(to)
            }
            Self::PerCycle { metrics, clock } => {
                2_u8.put(to)?;
                metrics.put(to)?;
                clock.put(to)
            }
        }
    }

    fn take(from: &mut Source<impl Read>) -> io::Result<Self> {
        match u8::take(from)? {
            0 => Wire::take(from).map(Self::Constant),
            1 => Wire::take(from).map(Self::Metric),
            2 => Ok(Self::PerCycle {
                metrics: Wire::take(from)?,
                clock: Wire::take(from)?,
            }),
            _ => Err(wrong("no RooflineValue")),
        }
    }
}

impl Wire for Losses {
    fn put(&self, to: &mut impl Write) -> io::Result<()> {
        self.list().put(to)
    }

    fn take(from: &mut Source<impl Read>) -> io::Result<Self> {
        Ok(Vec::<Loss>::take(from)?.into_iter().collect())
    }
}

impl Wire for Category {
    fn put(&self, to: &mut impl Write) -> io::Result<()> {
        self.name().to_owned().put(to)
    }

    fn take(from: &mut Source<impl Read>) -> io::Result<Self> {
        Self::from_name(&String::take(from)?).ok_or_else(|| wrong("no category"))
    }
}

impl Wire for Track {
    fn put(&self, to: &mut impl Write) -> io::Result<()> {
        self.name().to_owned().put(to)
    }

    fn take(from: &mut Source<impl Read>) -> io::Result<Self> {
        Self::from_name(&String::take(from)?).ok_or_else(|| wrong("no track"))
    }
}

impl Wire for NameDetail {
    fn put(&self, to: &mut impl Write) -> io::Result<()> {
        self.name().to_owned().put(to)
    }

    fn take(from: &mut Source<impl Read>) -> io::Result<Self> {
        let name = String::take(from)?;
        let known = Self::ALL.into_iter().find(|detail| detail.name() == name);
        known.ok_or_else(|| wrong("no detail of a name"))
    }
}

impl Wire for ColumnId {
    fn put(&self, to: &mut impl Write) -> io::Result<()> {
        self.name().to_owned().put(to)
    }

    fn take(from: &mut Source<impl Read>) -> io::Result<Self> {
        let name = String::take(from)?;
        let columns = |category: Category| category.columns().iter().chain(category.optional_columns());
        let known = Category::ALL
            .iter()
            .copied()
            .flat_map(columns)
            .find(|id| id.name() == name);
        known.copied().ok_or_else(|| wrong("no column"))
    }
}

impl Wire for MemoryKind {
    fn put(&self, to: &mut impl Write) -> io::Result<()> {
        self.number().put(to)
    }

    fn take(from: &mut Source<impl Read>) -> io::Result<Self> {
        Self::from_number(u32::take(from)?.into()).ok_or_else(|| wrong("no kind of memory"))
    }
}

/// Code and functions that several launches have in common go over once.
impl Wire for KernelProfile {
    fn put(&self, to: &mut impl Write) -> io::Result<()> {
        Self::put_all(std::slice::from_ref(self), to)
    }

    fn take(from: &mut Source<impl Read>) -> io::Result<Self> {
        Self::take_all(1, from)?.pop().ok_or_else(|| wrong("no launch"))
    }

    fn put_all(items: &[Self], to: &mut impl Write) -> io::Result<()> {
        let (mut codes, mut functions) = (Distinct::default(), Distinct::default());
        let mut numbers = Vec::with_capacity(items.len());
        for item in items {
            numbers.push((
                codes.number_of(item.code.as_ref()),
                functions.number_of(item.function.as_ref()),
            ));
        }
        codes.put(to)?;
        functions.put(to)?;
        for (item, numbers) in items.iter().zip(numbers) {
            let Self {
                id,
                name,
                process,
                device,
                context,
                stream,
                grid,
                block,
                metrics,
                instances,
                rules,
                ranges,
                sections,
                rooflines,
                code: _,
                function: _,
            } = item;
            id.put(to)?;
            name.put(to)?;
            process.put(to)?;
            device.put(to)?;
            context.put(to)?;
            stream.put(to)?;
            grid.put(to)?;
            block.put(to)?;
            metrics.put(to)?;
            instances.put(to)?;
            rules.put(to)?;
            ranges.put(to)?;
            sections.put(to)?;
            rooflines.put(to)?;
            numbers.put(to)?;
        }
        Ok(())
    }

    fn take_all(length: usize, from: &mut Source<impl Read>) -> io::Result<Vec<Self>> {
        let codes: Vec<Arc<KernelCode>> = take_distinct(from)?;
        let functions: Vec<Arc<KernelFunction>> = take_distinct(from)?;
        let mut items = Vec::new();
        for _ in 0..length {
            let mut item = Self {
                id: Wire::take(from)?,
                name: Wire::take(from)?,
                process: Wire::take(from)?,
                device: Wire::take(from)?,
                context: Wire::take(from)?,
                stream: Wire::take(from)?,
                grid: Wire::take(from)?,
                block: Wire::take(from)?,
                metrics: Wire::take(from)?,
                instances: Wire::take(from)?,
                rules: Wire::take(from)?,
                ranges: Wire::take(from)?,
                sections: Wire::take(from)?,
                rooflines: Wire::take(from)?,
                code: None,
                function: None,
            };
            let (code, function) = Wire::take(from)?;
            item.code = at_number(&codes, code)?;
            item.function = at_number(&functions, function)?;
            items.push(item);
        }
        Ok(items)
    }
}

/// What launches share, each once.
#[derive(Default)]
struct Distinct<'a, T> {
    numbers: HashMap<*const T, u32>,
    items: Vec<&'a T>,
}

impl<'a, T: Wire> Distinct<'a, T> {
    fn number_of(&mut self, item: Option<&'a Arc<T>>) -> Option<u32> {
        let item = item?;
        let next = u32::try_from(self.items.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry(Arc::as_ptr(item)).or_insert(next);
        if number == next {
            self.items.push(item);
        }
        Some(number)
    }

    fn put(&self, to: &mut impl Write) -> io::Result<()> {
        put_length(self.items.len(), to)?;
        self.items.iter().try_for_each(|item| item.put(to))
    }
}

fn take_distinct<T: Wire>(from: &mut Source<impl Read>) -> io::Result<Vec<Arc<T>>> {
    let length = take_length(from)?;
    (0..length).map(|_| T::take(from).map(Arc::new)).collect()
}

fn at_number<T>(items: &[Arc<T>], number: Option<u32>) -> io::Result<Option<Arc<T>>> {
    let Some(number) = number else { return Ok(None) };
    let item = items.get(index(number)).cloned();
    item.map(Some)
        .ok_or_else(|| wrong("a launch of a kernel that is not there"))
}
