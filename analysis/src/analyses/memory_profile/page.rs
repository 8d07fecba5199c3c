//! Profiles of memory, as people read them.

use flopwatch_report::page::{Cell, Page, Table, Unit};

use super::{MemoryProfileChangesResult, MemoryProfileFrame, MemoryProfileResult};

/// Frames of a stack that a table shows: the innermost ones.
const FRAMES: usize = 4;

fn stack(frames: &[MemoryProfileFrame]) -> String {
    let mut shown: Vec<String> = frames.iter().take(FRAMES).map(MemoryProfileFrame::shown).collect();
    if frames.len() > FRAMES {
        shown.push(format!("and {} more", frames.len() - FRAMES));
    }
    shown.join(" < ")
}

fn own(frame: Option<&MemoryProfileFrame>) -> Cell {
    frame.map(MemoryProfileFrame::shown).into()
}

/// A table by function of rows `(function, file, flat bytes, cumulative bytes)`.
fn functions<'a>(rows: impl IntoIterator<Item = (&'a str, &'a str, i64, i64)>, left_out: u64) -> Table {
    let mut table = Table::new(
        "By function",
        &[
            ("Function", Unit::None),
            ("File", Unit::None),
            ("Flat", Unit::Bytes),
            ("Cumulative", Unit::Bytes),
        ],
    );
    table.left_out = left_out;
    for (function, file, flat, cumulative) in rows {
        table.push([function.into(), file.into(), flat.into(), cumulative.into()]);
    }
    table
}

pub(super) fn of_one(about: &str, result: &MemoryProfileResult) -> Page {
    let mut page = Page::new("Memory profile", about);
    page.not_captured.clone_from(&result.not_captured);
    if !result.not_captured.is_empty() {
        return page;
    }
    page.tiles([
        ("Given out", result.total_bytes.into(), Unit::Bytes),
        ("Buffers", result.total_buffers.into(), Unit::None),
        ("Measured", result.measured.as_str().into(), Unit::None),
    ]);
    let mut devices = Table::new(
        "By device and kind",
        &[
            ("Device", Unit::None),
            ("Kind", Unit::None),
            ("Bytes", Unit::Bytes),
            ("Buffers", Unit::None),
        ],
    );
    for one in &result.devices {
        devices.push([
            one.device.clone().into(),
            one.kind.clone().into(),
            one.bytes.into(),
            one.buffers.into(),
        ]);
    }
    devices.without_unknown();
    page.table(devices);
    let mut stacks = Table::new(
        "By stack",
        &[
            ("Bytes", Unit::Bytes),
            ("Buffers", Unit::None),
            ("Device", Unit::None),
            ("Kind", Unit::None),
            ("Asked for in", Unit::None),
            ("Stack, the innermost frame first", Unit::None),
        ],
    );
    stacks.left_out = result.stacks_left_out;
    for one in &result.stacks {
        stacks.push([
            one.bytes.into(),
            one.buffers.into(),
            one.device.clone().into(),
            one.kind.clone().into(),
            own(one.own_frame.as_ref()),
            stack(&one.frames).into(),
        ]);
    }
    stacks.without_unknown();
    page.table(stacks);
    let rows = result.functions.iter();
    let rows = rows.map(|one| {
        (
            one.function.as_str(),
            one.file.as_str(),
            one.flat_bytes,
            one.cumulative_bytes,
        )
    });
    page.table(functions(rows, result.functions_left_out));
    page
}

pub(super) fn of_two(about: &str, result: &MemoryProfileChangesResult) -> Page {
    let mut page = Page::new("Changes of memory", about);
    page.not_captured.clone_from(&result.not_captured);
    if !result.not_captured.is_empty() {
        return page;
    }
    page.tiles([
        ("Before", result.before_bytes.into(), Unit::Bytes),
        ("After", result.after_bytes.into(), Unit::Bytes),
        ("Change", result.change_bytes.into(), Unit::Bytes),
    ]);
    let mut devices = Table::new(
        "By device and kind",
        &[
            ("Device", Unit::None),
            ("Kind", Unit::None),
            ("Change", Unit::Bytes),
            ("Before", Unit::Bytes),
            ("After", Unit::Bytes),
        ],
    );
    for one in &result.devices {
        devices.push([
            one.device.clone().into(),
            one.kind.clone().into(),
            one.change_bytes.into(),
            one.before_bytes.into(),
            one.after_bytes.into(),
        ]);
    }
    devices.without_unknown();
    page.table(devices);
    let mut stacks = Table::new(
        "By stack",
        &[
            ("Change", Unit::Bytes),
            ("Before", Unit::Bytes),
            ("After", Unit::Bytes),
            ("Buffers", Unit::None),
            ("Device", Unit::None),
            ("Kind", Unit::None),
            ("Asked for in", Unit::None),
            ("Stack, the innermost frame first", Unit::None),
        ],
    );
    stacks.left_out = result.stacks_left_out;
    for one in &result.stacks {
        stacks.push([
            one.change_bytes.into(),
            one.before_bytes.into(),
            one.after_bytes.into(),
            one.change_buffers.into(),
            one.device.clone().into(),
            one.kind.clone().into(),
            own(one.own_frame.as_ref()),
            stack(&one.frames).into(),
        ]);
    }
    stacks.without_unknown();
    page.table(stacks);
    let rows = result.functions.iter();
    let rows = rows.map(|one| {
        (
            one.function.as_str(),
            one.file.as_str(),
            one.flat_bytes,
            one.cumulative_bytes,
        )
    });
    page.table(functions(rows, result.functions_left_out));
    page
}
