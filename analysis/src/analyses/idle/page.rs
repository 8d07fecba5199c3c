//! Idle time as people read it.

use flopwatch_model::{approximate, ratio};
use flopwatch_report::page::{Bars, Page, Table, Tile, TimelineLocation, Unit};

use super::{Idle, IdleGap, IdleTime};
use crate::definition::Analysis;

pub(super) fn of(output: &IdleTime) -> Page {
    let mut page = Page::of(Idle::TITLE, Idle::ABOUT, &output.not_captured);
    let idle: u64 = output.gpus.iter().map(|gpu| gpu.idle_ns).sum();
    let window: u64 = output.gpus.iter().map(|gpu| gpu.end_ns - gpu.start_ns).sum();
    page.tiles([
        Tile::figure("Idle", Unit::Ns, (!output.gpus.is_empty()).then_some(idle)),
        Tile::figure("Share of the time", Unit::Ratio, ratio(idle, window)),
        Tile::figure("GPU ops with their call", Unit::Ratio, output.coverage.joined_ratio),
    ]);
    page.table(class_table(output));
    page.table(cause_table(output));
    page.bars(histogram(output));
    page.table(gap_table(output));
    page.table(stream_table(output));
    page
}

fn class_table(output: &IdleTime) -> impl Into<Table> {
    let classes = output.gpus.iter().flat_map(|gpu| {
        let classes = gpu.classes.iter().filter(|class| class.gaps > 0);
        classes.map(move |class| (gpu.gpu, class))
    });
    Table::of("Classes of idle time", classes)
        .about(
            "Host wait: the next work was launched only after the last one had ended. Kernel wait: it \
             was launched in time and began soon. Other: it was launched in time and began late.",
        )
        .column("GPU", |(gpu, _)| gpu.label())
        .column("Class", |(_, class)| class.class.label())
        .column("Gaps", |(_, class)| class.gaps)
        .figure("Time", Unit::Ns, |(_, class)| class.idle_ns)
        .figure("Share of idle time", Unit::Ratio, |(_, class)| class.idle_ratio)
}

fn cause_table(output: &IdleTime) -> impl Into<Table> {
    let causes = output.gpus.iter().flat_map(|gpu| {
        let causes = gpu.host_wait_causes.iter();
        causes.map(move |cause| (gpu.gpu, cause))
    });
    Table::of("What the host did while GPUs waited for it", causes)
        .column("GPU", |(gpu, _)| gpu.label())
        .column("Launching thread", |(_, cause)| cause.activity.label())
        .figure("Time", Unit::Ns, |(_, cause)| cause.idle_ns)
        .figure("Share of host wait", Unit::Ratio, |(_, cause)| cause.host_wait_ratio)
}

/// A length for people, of the bounds of buckets alone.
fn bound(ns: u64) -> String {
    match ns {
        0..1_000_000 => format!("{} µs", ns / 1000),
        1_000_000..1_000_000_000 => format!("{} ms", ns / 1_000_000),
        _ => format!("{} s", ns / 1_000_000_000),
    }
}

fn histogram(output: &IdleTime) -> impl Into<Bars> {
    Bars::of("Idle time by length of gaps", Unit::Ns, &output.histogram, |bucket| {
        let gaps = bucket.gaps;
        match bucket.to_ns {
            Some(to) => format!("{} to {} ({gaps} gaps)", bound(bucket.from_ns), bound(to)),
            None => format!("{} and more ({gaps} gaps)", bound(bucket.from_ns)),
        }
    })
    .series("idle time", |bucket| bucket.idle_ns)
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

fn gap_table(output: &IdleTime) -> impl Into<Table> {
    let names = |holders: &[super::GapHolder]| {
        let names: Vec<&str> = holders.iter().map(|holder| holder.name.as_str()).collect();
        names.join(", ")
    };
    Table::of("Largest gaps", &output.gaps)
        .left_out(output.gaps_left_out)
        .column("GPU", |gap| gap.gpu.label())
        .figure("Start", Unit::Instant, |gap| gap.start_ns)
        .figure("Length", Unit::Ns, |gap| gap.idle_ns)
        .column("Class", |gap| gap.class.label())
        .column("Launching thread", cause)
        .column("Inside", |gap| names(&gap.during))
        .column("Launched in", |gap| names(&gap.launched_in))
        .column("Work before", |gap| gap.before.as_str())
        .column("Work behind", |gap| gap.after.as_str())
        .at(|gap| TimelineLocation::new(gap.start_ns, gap.end_ns, Some(gap.call_row.unwrap_or(gap.after_row))))
}

fn stream_table(output: &IdleTime) -> Table {
    let mut table = Table::of("Idle time of streams", &output.streams)
        .about("While one stream is idle others may run.")
        .left_out(output.streams_left_out)
        .column("Stream", |stream| stream.stream.label())
        .figure("Idle", Unit::Ns, |stream| stream.idle_ns)
        .figure("Share of the time", Unit::Ratio, |stream| stream.idle_ratio);
    let classes = ["Host wait", "Kernel wait", "Other", "Launch not recorded"];
    for (index, title) in classes.into_iter().enumerate() {
        let of_class = |class: &super::IdleOfClass| class.idle_ns;
        table = table.figure(title, Unit::Ns, |stream| stream.classes.get(index).map(of_class));
    }
    table.build()
}
