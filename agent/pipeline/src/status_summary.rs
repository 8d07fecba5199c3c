//! A summary artifact in the few lines that a capture's status has room for.

use std::collections::BTreeMap;

use flopwatch_api::capture::{
    CaptureSummary, CategoryCount, CopiedBytes, CopyKind, KernelTime, LiveFigures, TransformedOn,
};
use flopwatch_api::session::TransformDevice;
use flopwatch_model::{Category, Loss, LossReason};
use flopwatch_summary::Summary;
use flopwatch_trace::copy_category;
use flopwatch_trace::tracer::Tally;
use flopwatch_trace::transform::choice::Device;

/// Kernels in the status.
const TOP_KERNELS: usize = 5;
/// Longest kernel name in the status, in characters.
const MAX_NAME: usize = 256;
/// Longest reason in the status, in characters.
const MAX_REASON: usize = 512;

/// Shortens a summary.
pub fn status_summary(summary: &Summary) -> CaptureSummary {
    // What was cut is still there; everything else did not make it.
    let lost = summary
        .drops
        .iter()
        .filter(|drop| drop.is_of_something() && drop.reason != LossReason::Truncated);
    CaptureSummary {
        window_nanoseconds: signed(summary.window_ns),
        events: signed(summary.total_events),
        categories: summary
            .categories
            .iter()
            .filter_map(|count| {
                Some(CategoryCount {
                    category: count.category.name().to_owned(),
                    events: signed(count.events?),
                })
            })
            .collect(),
        traced: Vec::new(),
        gpu_busy_percent: busy_percent(summary),
        top_kernels: summary
            .kernels
            .rows
            .iter()
            .take(TOP_KERNELS)
            .map(|row| KernelTime {
                name: row.name.chars().take(MAX_NAME).collect(),
                total_nanoseconds: signed(row.statistics.total),
                calls: signed(row.statistics.calls),
            })
            .collect(),
        kernel_nanoseconds: summary.kernels.captured.then(|| {
            let totals = summary.kernels.rows.iter().map(|row| row.statistics.total);
            signed(totals.fold(0, u64::saturating_add))
        }),
        copies: copies(summary),
        dropped: lost.map(|drop| signed(drop.count)).fold(0, i64::saturating_add),
        transformed_on: summary.transformed_on.as_ref().map(|on| TransformedOn {
            device: match on.device {
                Device::Gpu => TransformDevice::Gpu,
                Device::Cpu => TransformDevice::Cpu,
            },
            reason: on.reason.chars().take(MAX_REASON).collect(),
        }),
    }
}

/// What a window that is open has recorded so far, as a status has it.
pub fn live_figures(tally: &Tally) -> LiveFigures {
    let categories = tally.events.iter().map(|(category, events)| CategoryCount {
        category: category.name().to_owned(),
        events: signed(*events),
    });
    let kernels = tally.latest_kernels.iter().take(TOP_KERNELS).map(|kernel| KernelTime {
        name: kernel.name.chars().take(MAX_NAME).collect(),
        total_nanoseconds: signed(kernel.total_ns),
        calls: signed(kernel.calls),
    });
    LiveFigures {
        categories: categories.collect(),
        latest_kernels: kernels.collect(),
    }
}

/// That processes were recorded and did nothing; none where there are none.
pub fn idle_processes(summary: &Summary) -> Option<String> {
    let is_idle = |drop: &&Loss| drop.reason == LossReason::Idle && drop.what == Loss::IDLE_PROCESSES;
    let counts = summary.drops.iter().filter(is_idle).map(|drop| drop.count);
    match counts.fold(0, u64::saturating_add) {
        0 => None,
        1 => Some("1 process recorded nothing".to_owned()),
        count => Some(format!("{count} processes recorded nothing")),
    }
}

/// Bytes of the copies by kind. The tables name copies as Nsight Systems does, finer than kinds.
fn copies(summary: &Summary) -> Vec<CopiedBytes> {
    let mut bytes: BTreeMap<CopyKind, u64> = BTreeMap::new();
    for row in &summary.memcpy_size.rows {
        let kind = match copy_category(&row.name) {
            Some(Category::CudaMemcpyH2d) => CopyKind::HostToDevice,
            Some(Category::CudaMemcpyD2h) => CopyKind::DeviceToHost,
            Some(Category::CudaMemcpyD2d) => CopyKind::DeviceToDevice,
            Some(Category::CudaMemcpyP2p) => CopyKind::PeerToPeer,
            _ => CopyKind::Other,
        };
        let sum = bytes.entry(kind).or_default();
        *sum = sum.saturating_add(row.statistics.total);
    }
    let copied = bytes.into_iter().map(|(kind, bytes)| CopiedBytes {
        kind,
        bytes: signed(bytes),
    });
    copied.collect()
}

/// Busy share of the window in percent, averaged over the devices; none where no GPU work was
/// captured.
fn busy_percent(summary: &Summary) -> Option<i32> {
    let devices = u128::try_from(summary.gpus.len()).ok()?;
    let busy: u128 = summary.gpus.iter().map(|gpu| u128::from(gpu.busy_ns)).sum();
    let percent = (busy * 100).checked_div(devices * u128::from(summary.window_ns))?;
    i32::try_from(percent.min(100)).ok()
}

/// The API has signed numbers only.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use flopwatch_model::{Category, Timeline};
    use flopwatch_summary::{GpuBusy, Statistics, Table, TableRow, summarise};
    use flopwatch_trace::tracer::LatestKernel;

    use super::*;

    fn empty() -> Summary {
        summarise(&Timeline::default())
    }

    #[test]
    fn a_category_that_was_not_captured_is_absent_and_one_without_events_is_zero() {
        let mut summary = empty();
        for count in &mut summary.categories {
            count.events = (count.category == Category::NvtxRange).then_some(0);
        }
        let short = status_summary(&summary);
        assert_eq!(
            short.categories,
            [CategoryCount {
                category: "nvtx_range".to_owned(),
                events: 0
            }]
        );
        assert_eq!(short.gpu_busy_percent, None);
    }

    #[test]
    fn what_an_open_window_recorded_fits_into_the_status() {
        let kernel = |calls| LatestKernel {
            name: "k".repeat(1_000),
            calls,
            total_ns: u64::MAX,
        };
        let figures = live_figures(&Tally {
            events: BTreeMap::from([(Category::CudaKernel, 7), (Category::CudaApi, u64::MAX)]),
            latest_kernels: (1..=9).map(kernel).collect(),
        });
        let counts: Vec<(&str, i64)> = figures
            .categories
            .iter()
            .map(|count| (count.category.as_str(), count.events))
            .collect();
        assert_eq!(counts.len(), 2);
        assert!(counts.contains(&("cuda_kernel", 7)) && counts.contains(&("cuda_api", i64::MAX)));
        assert_eq!(figures.latest_kernels.len(), TOP_KERNELS);
        let first = &figures.latest_kernels[0];
        assert_eq!((first.calls, first.total_nanoseconds), (1, i64::MAX));
        assert_eq!(first.name.len(), MAX_NAME);
    }

    #[test]
    fn the_status_says_where_the_transform_ran_and_why() {
        let mut summary = empty();
        assert_eq!(status_summary(&summary).transformed_on, None);
        summary.transformed_on = Some(flopwatch_summary::TransformedOn {
            device: Device::Cpu,
            reason: "no NVIDIA driver".to_owned(),
        });
        let on = status_summary(&summary).transformed_on.unwrap();
        assert_eq!(
            (on.device, on.reason.as_str()),
            (TransformDevice::Cpu, "no NVIDIA driver")
        );
    }

    fn table(rows: &[(&str, u64)]) -> Table {
        let row = |(name, total): &(&str, u64)| TableRow {
            name: (*name).to_owned(),
            style: None,
            share_of_table: 0.0,
            statistics: Statistics {
                calls: 1,
                total: *total,
                avg: 0.0,
                median: 0.0,
                min: 0,
                max: 0,
                stddev: 0.0,
            },
        };
        Table {
            captured: true,
            rows: rows.iter().map(row).collect(),
            ..Table::default()
        }
    }

    #[test]
    fn copies_are_summed_by_kind_and_the_time_of_all_kernels_is_kept() {
        let mut summary = empty();
        let none = status_summary(&summary);
        assert_eq!((none.kernel_nanoseconds, none.copies.len()), (None, 0));
        let kernels: Vec<_> = ["a", "b", "c", "d", "e", "f"].map(|name| (name, 10)).to_vec();
        summary.kernels = table(&kernels);
        summary.memcpy_size = table(&[
            ("[CUDA memcpy Host-to-Device]", 5),
            ("[CUDA memcpy Array-to-Host]", 1),
            ("[CUDA memcpy Unified Host-to-Device]", 2),
            ("[CUDA memcpy Peer-to-Peer]", 7),
            ("a name of a later version", 4),
        ]);
        let short = status_summary(&summary);
        assert_eq!((short.kernel_nanoseconds, short.top_kernels.len()), (Some(60), 5));
        let copies: Vec<_> = short
            .copies
            .iter()
            .map(|copy| (copy.kind.label(), copy.bytes))
            .collect();
        assert_eq!(copies, [("h2d", 5), ("p2p", 7), ("other", 7)]);
    }

    #[test]
    fn busy_share_is_averaged_over_the_devices() {
        let mut summary = empty();
        summary.window_ns = 1_000;
        summary.gpus = [900, 100]
            .map(|busy_ns| GpuBusy {
                device: 0,
                name: String::new(),
                busy_ns,
                busy_ratio_of_window: 0.0,
                busy_ratio_of_events_span: 0.0,
            })
            .to_vec();
        assert_eq!(status_summary(&summary).gpu_busy_percent, Some(50));
    }

    #[test]
    fn cut_events_and_idle_processes_are_not_counted_as_dropped() {
        let mut summary = empty();
        let drop = |reason, count| Loss {
            reason,
            what: String::new(),
            count,
        };
        summary.drops = vec![
            drop(LossReason::Truncated, 5),
            drop(LossReason::Dropped, 2),
            drop(LossReason::Unsupported, 1),
            drop(LossReason::Idle, 7),
        ];
        assert_eq!(status_summary(&summary).dropped, 3);
    }

    #[test]
    fn processes_that_did_nothing_are_told_with_their_number() {
        let mut summary = empty();
        assert_eq!(idle_processes(&summary), None);
        for (count, told) in [(1, "1 process recorded nothing"), (3, "3 processes recorded nothing")] {
            summary.drops = vec![Loss {
                reason: LossReason::Idle,
                what: Loss::IDLE_PROCESSES.to_owned(),
                count,
            }];
            assert_eq!(idle_processes(&summary).as_deref(), Some(told));
        }
    }
}
