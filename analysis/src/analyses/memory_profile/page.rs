//! Profiles of memory, as people read them.

use flopwatch_report::page::{Page, Table, TableBuilder, Tile, Unit};

use super::{MemoryProfileChangesResult, MemoryProfileFrame, MemoryProfileFunction, MemoryProfileResult};

/// Frames of a stack that a table shows: the innermost ones.
const MAX_SHOWN_FRAMES: usize = 4;

fn stack(frames: &[MemoryProfileFrame]) -> String {
    let mut shown: Vec<String> = frames
        .iter()
        .take(MAX_SHOWN_FRAMES)
        .map(MemoryProfileFrame::shown)
        .collect();
    if frames.len() > MAX_SHOWN_FRAMES {
        shown.push(format!("and {} more", frames.len() - MAX_SHOWN_FRAMES));
    }
    shown.join(" < ")
}

/// A stack as tables show it, of a profile or of the change between two.
#[derive(Clone, Copy)]
struct ShownStack<'a> {
    device: Option<&'a str>,
    kind: Option<&'a str>,
    own_frame: Option<&'a MemoryProfileFrame>,
    frames: &'a [MemoryProfileFrame],
}

/// Adds a column for each part of a stack.
fn with_stack<'a, T: Copy>(table: TableBuilder<T>, shown: impl Fn(T) -> ShownStack<'a>) -> impl Into<Table> {
    table
        .column("Device", |row| shown(row).device)
        .column("Kind", |row| shown(row).kind)
        .column("Asked for in", |row| {
            shown(row).own_frame.map(MemoryProfileFrame::shown)
        })
        .column("Stack, the innermost frame first", |row| stack(shown(row).frames))
        .without_unknown()
}

/// The table of functions.
fn functions(list: &[MemoryProfileFunction], left_out: u64) -> TableBuilder<&MemoryProfileFunction> {
    Table::of("By function", list)
        .left_out(left_out)
        .column("Function", |one| one.function.as_str())
        .column("File", |one| one.file.as_str())
        .figure("Flat", Unit::Bytes, |one| one.flat_bytes)
        .figure("Cumulative", Unit::Bytes, |one| one.cumulative_bytes)
}

pub(super) fn of_one(title: &str, about: &str, result: &MemoryProfileResult) -> Page {
    let mut page = Page::of(title, about, &result.not_captured);
    if !result.not_captured.is_empty() {
        return page;
    }
    page.tiles([
        Tile::figure("Given out", Unit::Bytes, result.total_bytes),
        Tile::new("Buffers", result.total_buffers),
        Tile::new("Measured", result.measured.as_str()),
    ]);
    page.table(
        Table::of("By device and kind", &result.devices)
            .column("Device", |one| one.device.as_deref())
            .column("Kind", |one| one.kind.as_deref())
            .figure("Bytes", Unit::Bytes, |one| one.bytes)
            .column("Buffers", |one| one.buffers)
            .without_unknown(),
    );
    let stacks = Table::of("By stack", &result.stacks)
        .left_out(result.stacks_left_out)
        .figure("Bytes", Unit::Bytes, |one| one.bytes)
        .column("Buffers", |one| one.buffers);
    page.table(with_stack(stacks, |one| ShownStack {
        device: one.device.as_deref(),
        kind: one.kind.as_deref(),
        own_frame: one.own_frame.as_ref(),
        frames: &one.frames,
    }));
    page.table(functions(&result.functions, result.functions_left_out));
    page
}

pub(super) fn of_two(title: &str, about: &str, result: &MemoryProfileChangesResult) -> Page {
    let mut page = Page::of(title, about, &result.not_captured);
    if !result.not_captured.is_empty() {
        return page;
    }
    page.tiles([
        Tile::figure("Before", Unit::Bytes, result.before_bytes),
        Tile::figure("After", Unit::Bytes, result.after_bytes),
        Tile::figure("Change", Unit::Bytes, result.change_bytes),
    ]);
    page.table(
        Table::of("By device and kind", &result.devices)
            .column("Device", |one| one.device.as_deref())
            .column("Kind", |one| one.kind.as_deref())
            .figure("Change", Unit::Bytes, |one| one.change_bytes)
            .figure("Before", Unit::Bytes, |one| one.before_bytes)
            .figure("After", Unit::Bytes, |one| one.after_bytes)
            .without_unknown(),
    );
    let stacks = Table::of("By stack", &result.stacks)
        .left_out(result.stacks_left_out)
        .figure("Change", Unit::Bytes, |one| one.change_bytes)
        .figure("Before", Unit::Bytes, |one| one.before_bytes)
        .figure("After", Unit::Bytes, |one| one.after_bytes)
        .column("Buffers", |one| one.change_buffers);
    page.table(with_stack(stacks, |one| ShownStack {
        device: one.device.as_deref(),
        kind: one.kind.as_deref(),
        own_frame: one.own_frame.as_ref(),
        frames: &one.frames,
    }));
    page.table(functions(&result.functions, result.functions_left_out));
    page
}
