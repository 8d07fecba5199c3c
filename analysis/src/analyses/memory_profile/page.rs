//! Profiles of memory, as people read them.

use flopwatch_report::page::{Page, Table, Tile, Unit};

use super::{MemoryProfileChangesResult, MemoryProfileFrame, MemoryProfileResult};

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
    page.table(
        Table::of("By stack", &result.stacks)
            .left_out(result.stacks_left_out)
            .figure("Bytes", Unit::Bytes, |one| one.bytes)
            .column("Buffers", |one| one.buffers)
            .column("Device", |one| one.device.as_deref())
            .column("Kind", |one| one.kind.as_deref())
            .column("Asked for in", |one| {
                one.own_frame.as_ref().map(MemoryProfileFrame::shown)
            })
            .column("Stack, the innermost frame first", |one| stack(&one.frames))
            .without_unknown(),
    );
    page.table(
        Table::of("By function", &result.functions)
            .left_out(result.functions_left_out)
            .column("Function", |one| one.function.as_str())
            .column("File", |one| one.file.as_str())
            .figure("Flat", Unit::Bytes, |one| one.flat_bytes)
            .figure("Cumulative", Unit::Bytes, |one| one.cumulative_bytes),
    );
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
    page.table(
        Table::of("By stack", &result.stacks)
            .left_out(result.stacks_left_out)
            .figure("Change", Unit::Bytes, |one| one.change_bytes)
            .figure("Before", Unit::Bytes, |one| one.before_bytes)
            .figure("After", Unit::Bytes, |one| one.after_bytes)
            .column("Buffers", |one| one.change_buffers)
            .column("Device", |one| one.device.as_deref())
            .column("Kind", |one| one.kind.as_deref())
            .column("Asked for in", |one| {
                one.own_frame.as_ref().map(MemoryProfileFrame::shown)
            })
            .column("Stack, the innermost frame first", |one| stack(&one.frames))
            .without_unknown(),
    );
    page.table(
        Table::of("By function", &result.functions)
            .left_out(result.functions_left_out)
            .column("Function", |one| one.function.as_str())
            .column("File", |one| one.file.as_str())
            .figure("Flat", Unit::Bytes, |one| one.flat_bytes)
            .figure("Cumulative", Unit::Bytes, |one| one.cumulative_bytes),
    );
    page
}
