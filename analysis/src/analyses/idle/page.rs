//! Idle time as people read it.

use flopwatch_model::{approximate, ratio};
use flopwatch_report::page::{Bars, Cell, Page, Place, Series, Table, Unit};

use super::{Idle, IdleGap, IdleTime};
use crate::definition::Analysis;

pub(super) fn of(output: &IdleTime) -> Page {
    let mut page = Page::new("Idle time", Idle::ABOUT);
    page.not_captured.clone_from(&output.not_captured);
    let idle: u64 = output.gpus.iter().map(|gpu| gpu.idle_ns).sum();
    let window: u64 = output.gpus.iter().map(|gpu| gpu.end_ns - gpu.start_ns).sum();
    page.tiles([
        ("Idle", (!output.gpus.is_empty()).then_some(idle).into(), Unit::Ns),
        ("Share of the time", ratio(idle, window).into(), Unit::Ratio),
        (
            "GPU ops with their call",
            output.coverage.joined_ratio.into(),
            Unit::Ratio,
        ),
    ]);
    page.table(class_table(output));
    page.table(cause_table(output));
    page.bars(histogram(output));
    page.table(gap_table(output));
    page.table(stream_table(output));
    page
}

fn class_table(output: &IdleTime) -> Table {
    let columns = [
        ("GPU", Unit::None),
        ("Class", Unit::None),
        ("Gaps", Unit::None),
        ("Time", Unit::Ns),
        ("Share of idle time", Unit::Ratio),
    ];
    let mut table = Table::new("Classes of idle time", &columns);
    "Host wait: the next work was launched only after the last one had ended. Kernel wait: it was launched in time and began soon. Other: it \
     was launched in time and began late."
        .clone_into(&mut table.about);
    for gpu in &output.gpus {
        for class in gpu.classes.iter().filter(|class| class.gaps > 0) {
            let cells: [Cell; 5] = [
                gpu.gpu.label().into(),
                class.class.label().into(),
                class.gaps.into(),
                class.idle_ns.into(),
                class.idle_ratio.into(),
            ];
            table.push(cells);
        }
    }
    table
}

fn cause_table(output: &IdleTime) -> Table {
    let columns = [
        ("GPU", Unit::None),
        ("Launching thread", Unit::None),
        ("Time", Unit::Ns),
        ("Share of host wait", Unit::Ratio),
    ];
    let mut table = Table::new("What the host did while GPUs waited for it", &columns);
    for gpu in &output.gpus {
        for cause in &gpu.host_wait_causes {
            let cells: [Cell; 4] = [
                gpu.gpu.label().into(),
                cause.activity.label().into(),
                cause.idle_ns.into(),
                cause.host_wait_ratio.into(),
            ];
            table.push(cells);
        }
    }
    table
}

/// A length for people, of the bounds of buckets alone.
fn bound(ns: u64) -> String {
    match ns {
        0..1_000_000 => format!("{} µs", ns / 1000),
        1_000_000..1_000_000_000 => format!("{} ms", ns / 1_000_000),
        _ => format!("{} s", ns / 1_000_000_000),
    }
}

fn histogram(output: &IdleTime) -> Bars {
    let value = |of: fn(&super::GapBucket) -> u64| {
        let values = output
            .histogram
            .iter()
            .map(|bucket| Some(approximate(of(bucket).into())));
        values.collect()
    };
    Bars {
        title: "Idle time by length of gaps".to_owned(),
        unit: Unit::Ns,
        stacked: false,
        labels: output
            .histogram
            .iter()
            .map(|bucket| {
                let gaps = bucket.gaps;
                match bucket.to_ns {
                    Some(to) => format!("{} to {} ({gaps} gaps)", bound(bucket.from_ns), bound(to)),
                    None => format!("{} and more ({gaps} gaps)", bound(bucket.from_ns)),
                }
            })
            .collect(),
        series: vec![Series {
            name: "idle time".to_owned(),
            values: value(|bucket| bucket.idle_ns),
        }],
    }
}

fn cause(gap: &IdleGap) -> String {
    let part = |part: &super::GapPart| match &part.name {
        Some(name) => format!("{name} {:.1} µs", approximate(part.time_ns.into()) / 1000.0),
        None => format!(
            "{} {:.1} µs",
            part.activity.label(),
            approximate(part.time_ns.into()) / 1000.0
        ),
    };
    let parts: Vec<String> = gap.thread.iter().take(3).map(part).collect();
    parts.join(", ")
}

fn gap_table(output: &IdleTime) -> Table {
    let columns = [
        ("GPU", Unit::None),
        ("Start", Unit::Instant),
        ("Length", Unit::Ns),
        ("Class", Unit::None),
        ("Launching thread", Unit::None),
        ("Inside", Unit::None),
        ("Launched in", Unit::None),
        ("Work before", Unit::None),
        ("Work behind", Unit::None),
    ];
    let mut table = Table::new("Largest gaps", &columns);
    table.left_out = output.gaps_left_out;
    let names = |holders: &[super::GapHolder]| {
        let names: Vec<&str> = holders.iter().map(|holder| holder.name.as_str()).collect();
        names.join(", ")
    };
    for gap in &output.gaps {
        let place = Place {
            input: 0,
            start_ns: gap.start_ns,
            end_ns: gap.end_ns,
            row: Some(gap.call_row.unwrap_or(gap.after_row)),
        };
        let cells: [Cell; 9] = [
            gap.gpu.label().into(),
            gap.start_ns.into(),
            gap.idle_ns.into(),
            gap.class.label().into(),
            cause(gap).into(),
            names(&gap.during).into(),
            names(&gap.launched_in).into(),
            gap.before.as_str().into(),
            gap.after.as_str().into(),
        ];
        table.push_at(place, cells);
    }
    table
}

fn stream_table(output: &IdleTime) -> Table {
    let columns = [
        ("Stream", Unit::None),
        ("Idle", Unit::Ns),
        ("Share of the time", Unit::Ratio),
        ("Host wait", Unit::Ns),
        ("Kernel wait", Unit::Ns),
        ("Other", Unit::Ns),
        ("Launch not recorded", Unit::Ns),
    ];
    let mut table = Table::new("Idle time of streams", &columns);
    "While one stream is idle others may run.".clone_into(&mut table.about);
    table.left_out = output.streams_left_out;
    for stream in &output.streams {
        let first: [Cell; 3] = [
            stream.stream.label().into(),
            stream.idle_ns.into(),
            stream.idle_ratio.into(),
        ];
        let classes = stream.classes.iter().map(|class| Cell::from(class.idle_ns));
        table.push(first.into_iter().chain(classes));
    }
    table
}
