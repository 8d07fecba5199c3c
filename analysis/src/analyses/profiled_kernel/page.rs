//! The launch as people read it.

use flopwatch_measures::speed_of_light::Limiter;
use flopwatch_model::{RuleKind, RuleResult, Scope, Speedup, whole};
use flopwatch_report::page::{Bars, Cell, Page, Series, Table, Tile, Unit};

use super::LaunchDetails;

/// Most lines of code.
const MAX_LINES: usize = 400;
/// Most bars of a list of parts.
const MAX_PARTS: usize = 12;

pub(super) fn of(details: &LaunchDetails) -> Page {
    let about = match (&details.device, details.launch) {
        (_, None) => String::new(),
        (Some(device), Some(id)) => format!("Launch {id} on {device}, as Nsight Compute measured it: replayed alone."),
        (None, Some(id)) => format!("Launch {id}, as Nsight Compute measured it: replayed alone."),
    };
    let title = if details.name.is_empty() {
        "Profiled kernel"
    } else {
        &details.name
    };
    let mut page = Page::of(title, &about, &details.not_captured);
    if details.launch.is_none() {
        return page;
    }
    figures(&mut page, details);
    if !details.rules.is_empty() {
        rules(&mut page, details);
    }
    let light = &details.speed_of_light;
    for (title, parts) in [
        ("Compute by unit", &light.compute_parts),
        ("Caches and memory by unit", &light.memory_parts),
    ] {
        let parts: Vec<_> = parts.iter().filter(|part| part.share > 0.0).take(MAX_PARTS).collect();
        let bars = parts.iter().map(|part| (unit_name(&part.metric), part.share));
        bars_of(&mut page, title, "of its peak", Unit::Ratio, bars);
    }
    occupancy(&mut page, details);
    memory(&mut page, details);
    let stalls = details.stalls.iter().filter(|stall| stall.cycles_per_instruction > 0.0);
    bars_of(
        &mut page,
        "Cycles of a warp between two instructions",
        "cycles",
        Unit::None,
        stalls.map(|stall| (stall.reason.replace('_', " "), stall.cycles_per_instruction)),
    );
    let opcodes = details.mix.opcodes.iter().take(2 * MAX_PARTS);
    let executed = opcodes.map(|opcode| {
        (
            opcode.name.clone(),
            flopwatch_model::approximate(opcode.executed.into()),
        )
    });
    bars_of(
        &mut page,
        "Instructions of warps by opcode",
        "executed",
        Unit::None,
        executed,
    );
    page.table_unless_empty(source_lines(details));
    page.table_unless_empty(instructions(details));
    ranges(&mut page, details);
    page
}

fn figures(page: &mut Page, details: &LaunchDetails) {
    let by = |[x, y, z]: [u32; 3]| Cell::from(format!("{x} × {y} × {z}"));
    let light = &details.speed_of_light;
    let figures = details.figures.unwrap_or_default();
    page.tiles([
        Tile::figure("Duration", Unit::Ns, figures.duration_ns),
        Tile::new("Bound by", light.limiter.map(Limiter::label)),
        Tile::figure("Compute", Unit::Ratio, light.compute_share),
        Tile::figure("Caches and memory", Unit::Ratio, light.memory_share),
        Tile::figure(
            "DRAM bandwidth",
            Unit::BytesPerSecond,
            figures.bandwidth_bytes_per_second,
        ),
        Tile::figure("Occupancy", Unit::Ratio, details.occupancy.achieved),
        Tile::figure("Occupancy at most", Unit::Ratio, details.occupancy.theoretical),
        Tile::new("Grid", by(details.grid)),
        Tile::new("Block", by(details.block)),
        Tile::new("Waves", details.occupancy.waves),
    ]);
}

/// `sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_elapsed` without what all of them end in.
fn unit_name(metric: &str) -> String {
    metric
        .split('.')
        .next()
        .unwrap_or(metric)
        .replace("__", ": ")
        .replace('_', " ")
}

fn bars_of(page: &mut Page, title: &str, series: &str, unit: Unit, bars: impl Iterator<Item = (String, f64)>) {
    let (labels, values): (Vec<String>, Vec<Option<f64>>) = bars.map(|(label, value)| (label, Some(value))).unzip();
    if labels.is_empty() {
        return;
    }
    let name = series.to_owned();
    page.bars(Bars {
        title: title.to_owned(),
        unit,
        stacked: false,
        labels,
        series: vec![Series { name, values }],
    });
}

/// A table of what rules said, and their messages in full: they are longer than a cell.
fn rules(page: &mut Page, details: &LaunchDetails) {
    let mut rules: Vec<&RuleResult> = details.rules.iter().collect();
    rules.sort_by_key(|rule| match rule.kind {
        RuleKind::Optimization => 0,
        RuleKind::Warning => 1,
        RuleKind::Error => 2,
        RuleKind::Information => 3,
    });
    let name = |rule: &RuleResult| match rule.title.as_str() {
        "" => rule.name.clone(),
        title => format!("{}: {title}", rule.name),
    };
    page.table(
        Table::of("NVIDIA's rules", rules.iter().copied())
            .about(
                "What the rules of Nsight Compute said when the report was made. Gains are NVIDIA's \
                 estimates: local ones are of what the rule looks at, not of the launch.",
            )
            .column("Says", |rule| match rule.kind {
                RuleKind::Information => "information",
                RuleKind::Optimization => "optimisation",
                RuleKind::Warning => "warning",
                RuleKind::Error => "error",
            })
            .column("Rule", name)
            .column("Section", |rule| rule.section.as_str())
            .column("Estimated gain", |rule| rule.speedup.map(gain))
            .column("From", |rule| {
                let from = rule.metrics.iter().map(|of| format!("{}: {}", of.name, of.info));
                let from: Vec<String> = from.collect();
                (!from.is_empty()).then(|| from.join("; "))
            })
            .without_unknown(),
    );
    let messages = rules
        .iter()
        .map(|rule| format!("{}. {}", name(rule), plain(&rule.text)));
    let messages: Vec<String> = messages.collect();
    page.text("What they say, in NVIDIA's words", messages.join("\n\n"));
}

fn gain(speedup: Speedup) -> String {
    let scope = match speedup.scope {
        Scope::Unknown => "",
        Scope::Local => ", local",
        Scope::Global => ", of the launch",
    };
    format!("{:.1} %{scope}", speedup.percent)
}

/// NVIDIA's text without its marks: `@section:Occupancy:Occupancy@` is `Occupancy`, a link its
/// title.
pub(crate) fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('@') {
        let (before, mark) = rest.split_at(at);
        out.push_str(before);
        let inside = mark.get(1..).unwrap_or_default();
        let known = ["section:", "url:", "source:"]
            .iter()
            .find_map(|kind| inside.strip_prefix(kind).map(|inside| (*kind, inside)));
        if let Some((kind, (body, behind))) = known.and_then(|(kind, inside)| Some((kind, inside.split_once('@')?))) {
            let title = match kind {
                "section:" => body.rsplit(':').next(),
                _ => body.split(':').next(),
            };
            out.push_str(title.unwrap_or(body));
            rest = behind;
        } else {
            out.push('@');
            rest = inside;
        }
    }
    out.push_str(rest);
    out
}

fn occupancy(page: &mut Page, details: &LaunchDetails) {
    let occupancy = &details.occupancy;
    if occupancy.limits.is_empty() {
        return;
    }
    let facts = [
        occupancy
            .registers_per_thread
            .map(|count| format!("{count} registers per thread")),
        occupancy
            .shared_memory_per_block_bytes
            .map(|bytes| format!("{bytes} bytes of shared memory per block")),
    ];
    let facts: Vec<String> = facts.into_iter().flatten().collect();
    page.table(
        Table::of("What limits occupancy", &occupancy.limits)
            .about(if facts.is_empty() {
                String::new()
            } else {
                format!("{}.", facts.join(", "))
            })
            .column("Resource", |limit| match limit.resource.as_str() {
                "shared_mem" => "shared memory",
                "warps" => "warps (block size)",
                other => other,
            })
            .column("Blocks per multiprocessor", |limit| limit.blocks)
            .column("Limits the launch", |limit| limit.limits),
    );
}

fn memory(page: &mut Page, details: &LaunchDetails) {
    page.table_unless_empty(
        Table::of("Caches", &details.caches)
            .column("Memory", |cache| cache.name.as_str())
            .figure("Hits", Unit::Ratio, |cache| cache.hit_ratio)
            .figure("Busy", Unit::Ratio, |cache| cache.busy_ratio),
    );
    page.table_unless_empty(
        Table::of("Bytes between memories", &details.links)
            .column("From", |link| link.from.as_str())
            .column("To", |link| link.to.as_str())
            .figure("Bytes", Unit::Bytes, |link| link.bytes)
            .figure("Bandwidth", Unit::BytesPerSecond, |link| link.bytes_per_second)
            .figure("Of its peak", Unit::Ratio, |link| link.peak_ratio),
    );
    page.table_unless_empty(
        Table::of("Loads and stores", &details.accesses)
            .about(
                "A request is an instruction of a warp, a sector 32 bytes: 32 threads that touch 4 bytes side \
                 by side need 4.",
            )
            .column("Memory", |access| access.memory.as_str())
            .column("Operation", |access| access.operation.as_str())
            .column("Requests", |access| access.requests)
            .column("Sectors", |access| access.sectors)
            .column("Sectors per request", |access| access.sectors_per_request)
            .figure("L1 hits", Unit::Ratio, |access| access.hit_ratio)
            .column("Bank conflicts", |access| access.bank_conflicts)
            .without_unknown(),
    );
}

/// Eight characters for a share of what is most, so that what is hot is seen at a glance.
fn heat(share: Option<f64>, max: f64) -> Cell {
    const EIGHTHS: [&str; 9] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"];
    const CHARACTERS: f64 = 8.0;
    let Some(share) = share.filter(|share| *share > 0.0 && max > 0.0) else {
        return Cell::Nothing;
    };
    let eighths = usize::try_from(whole(share / max * CHARACTERS * 8.0))
        .unwrap_or(0)
        .max(1);
    let part = EIGHTHS.get(eighths % 8).copied().unwrap_or_default();
    format!("{}{part}", "█".repeat(eighths / 8)).into()
}

/// The last part of a path, which tells files apart in most captures.
fn short(location: &str) -> &str {
    location.rsplit('/').next().unwrap_or(location)
}

fn source_lines(details: &LaunchDetails) -> impl Into<Table> {
    let mut about = details.line_coverage.as_ref().map_or_else(String::new, |coverage| {
        format!(
            "Sums over the instructions that a line was made into, the hottest first. {} of {} instructions and {} of {} samples have a line. \
             What was inlined counts where NVIDIA's tools count it: at the first line that the table of lines gives the instruction.",
            coverage.instructions_with_line, coverage.instructions, coverage.samples_with_line, coverage.samples
        )
    });
    let mut files: Vec<&str> = details.source_lines.iter().map(|line| line.file.as_str()).collect();
    files.dedup();
    let only = files.len() == 1;
    if let Some(file) = files.first().filter(|_| only) {
        about = format!("All of {file}. {about}");
    }
    let max = details.source_lines.iter().filter_map(|line| line.sample_ratio);
    let max = max.fold(0.0, f64::max);
    Table::of("Source lines", &details.source_lines)
        .about(about)
        .left_out(details.source_lines_left_out)
        .column("Line", |line| format!("{}:{}", short(&line.file), line.line))
        .column("Heat", |line| heat(line.sample_ratio, max))
        .figure("Of all", Unit::Ratio, |line| line.sample_ratio)
        .column("Samples", |line| line.samples)
        .column("Mostly", |line| {
            line.stall.as_deref().map(|stall| stall.replace('_', " "))
        })
        .column("Executed", |line| line.executed)
        .column("Threads", |line| line.threads)
        .column("Instructions", |line| line.instructions)
        .column("Source", |line| line.text.as_deref())
        .column("File", |line| (!only).then_some(line.file.as_str()))
        .without_unknown()
}

fn instructions(details: &LaunchDetails) -> impl Into<Table> {
    let architecture = details
        .architecture
        .as_deref()
        .map(|name| format!(" Machine code of {name}."));
    let max = details.instructions.iter().filter_map(|of| of.sample_ratio);
    let max = max.fold(0.0, f64::max);
    Table::of("Instructions by address", &details.instructions)
        .about(format!(
            "Bytes behind the kernel's first instruction. Samples are of warps that were at the \
             instruction, most of them in the state that is named.{}",
            architecture.unwrap_or_default()
        ))
        .left_out(details.instructions_left_out)
        .column("Offset", |of| format!("{:#06x}", of.offset_bytes))
        .column("Instruction", |of| of.text.as_deref())
        .column("Heat", |of| heat(of.sample_ratio, max))
        .figure("Of all", Unit::Ratio, |of| of.sample_ratio)
        .column("Samples", |of| of.samples)
        .column("Mostly", |of| of.stall.as_deref().map(|stall| stall.replace('_', " ")))
        .column("Executed", |of| of.executed)
        .column("Threads", |of| of.threads)
        .column("Line", |of| match of.source.as_deref() {
            // The innermost line first, and behind it where that was inlined.
            Some(_) if !of.inlined.is_empty() => {
                let inlined = of.inlined.iter().map(|location| short(location));
                Some(inlined.collect::<Vec<_>>().join(" ← "))
            }
            source => source.map(|source| short(source).to_owned()),
        })
        .column("PTX line", |of| of.ptx_line.map(u64::from))
        .without_unknown()
}

fn ranges(page: &mut Page, details: &LaunchDetails) {
    if let Some(code) = &details.code {
        for (title, text) in [("Source", &code.source), ("PTX of its module", &code.ptx)] {
            let count = text.lines().count();
            let mut shown: Vec<String> = text.lines().take(MAX_LINES).map(str::to_owned).collect();
            if count > shown.len() {
                shown.push(format!(
                    "... and {} more lines, which are in the JSON of this page",
                    count - shown.len()
                ));
            }
            if !shown.is_empty() {
                page.text(
                    title,
                    shown.join(
                        "
",
                    ),
                );
            }
        }
        if code.machine_code_bytes > 0 {
            let description = format!("{} bytes of machine code in its module.", code.machine_code_bytes);
            page.text("Machine code", description);
        }
    }
    if !details.ranges.is_empty() {
        let ranges = details.ranges.iter().map(|range| {
            if range.domain.is_empty() {
                range.name.clone()
            } else {
                format!("{}: {}", range.domain, range.name)
            }
        });
        page.text("Annotated ranges around it", ranges.collect::<Vec<String>>().join("\n"));
    }
    if !details.sections.is_empty() {
        page.text("Sections of the report", details.sections.join(", "));
    }
}
