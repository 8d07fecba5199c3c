//! Few of the floating-point operations that the devices could do.

use flopwatch_model::Device;
use flopwatch_report::page::{Cell, TimelineLocation, Unit, figure};

use crate::advice::wording::share;
use crate::advice::{Area, Confidence, Evidence, Facts, FindingDraft, Rule, Severity, Threshold, Verdict};
use crate::analyses::mfu::{FlopsSource, MfuParams, MfuResult, PeakSource, data_sheet};

const MFU: Threshold = Threshold::percent(
    "model FLOP utilisation, below which it fires",
    30,
    "ours: large training runs that were published reach 38 to 46 % (Llama 3, arXiv:2407.21783; PaLM, arXiv:2204.02311)",
);
const COVERAGE: Threshold = Threshold::percent(
    "time of kernels whose operations are known, of all kernels, below which it abstains",
    50,
    "ours: else the operations of most kernels may be missing",
);

/// Fires where model FLOP utilisation, as the analysis `mfu` measures it, is low.
pub(super) static RULE: Rule = Rule {
    id: "mfu-low",
    title: "Model FLOP utilisation is low",
    area: Area::Kernels,
    needs: &[],
    of_gpu_work: false,
    thresholds: &[MFU, COVERAGE],
    evaluate,
    #[cfg(test)]
    captures: [|| scene(29_000_000), || scene(30_000_000)],
};

fn evaluate(facts: &Facts<'_>) -> Verdict {
    let devices = &facts.timeline.capture.devices;
    let has_peak = |device: &Device| !device.peak_flops.is_empty() || data_sheet(device).is_some();
    if !devices.iter().any(has_peak) {
        return Verdict::abstain(
            "the capture does not state the peak rate of its devices, and no data sheet is known by their names; the analysis `mfu` takes it as a parameter (peak_tflops)",
        );
    }
    let params = MfuParams {
        limit: u32::try_from(facts.rows).unwrap_or(u32::MAX).max(1),
        ..MfuParams::default()
    };
    let mfu = MfuResult::of(facts.timeline, &params);
    let (Some(ratio), Some(source)) = (mfu.mfu_ratio, mfu.flops_source) else {
        let reason = mfu.not_captured.last().map(|lacking| lacking.reason.clone());
        return Verdict::abstain(reason.unwrap_or_else(|| "no floating-point operations are known".to_owned()));
    };
    if source == FlopsSource::Counters {
        return Verdict::abstain("counters of Nsight Compute leave out what tensor cores do");
    }
    if !COVERAGE.reached(mfu.known_kernel_time_ns, mfu.kernel_time_ns) {
        return Verdict::abstain(format!(
            "the operations of {} of the time of kernels are known, too few to tell; the analysis `mfu` takes them as a parameter (flops_per_iteration)",
            share(mfu.known_kernel_time_ns, mfu.kernel_time_ns)
        ));
    }
    let is_of_data_sheet = mfu.peak_source == Some(PeakSource::DataSheet);
    if is_of_data_sheet && mfu.rows.iter().any(|row| row.element_type.is_none()) {
        return Verdict::abstain(
            "the type of number was not recorded, by which the data sheet has the peak rate; the analysis `mfu` takes it as a parameter (peak_tflops)",
        );
    }
    if mfu
        .rows
        .iter()
        .any(|row| row.peak_ratio.is_some_and(|ratio| ratio > 1.0))
    {
        return Verdict::abstain("operations reach more than the peak rate: it is of other units");
    }
    let mfu_percent = ratio * 100.0;
    if mfu_percent >= flopwatch_model::approximate(MFU.value.into()) {
        return Verdict::Quiet;
    }
    let rows = mfu.rows.iter().take(facts.rows).filter_map(|row| {
        Some(Evidence {
            what: format!("share of the peak while it runs: {} {}", row.name, row.shapes)
                .trim_end()
                .to_owned(),
            value: Cell::from(row.peak_ratio?),
            unit: Unit::Ratio,
            place: row
                .start_ns
                .zip(row.end_ns)
                .map(|(start_ns, end_ns)| TimelineLocation::new(start_ns, end_ns, row.row)),
        })
    });
    let busy = if facts.gpus.is_empty() {
        String::new()
    } else {
        let idle = facts.per_gpu(|gpu| gpu.idle.len_ns());
        format!(
            "; the GPU is idle for {} of the window",
            share(idle, facts.window.len())
        )
    };
    FindingDraft::new(format!(
        "The model's floating-point operations ({}) take {} of the time at the peak rate{}{busy}.",
        source.label(),
        figure::number(ratio, Unit::Ratio),
        if is_of_data_sheet { " of the data sheet" } else { "" }
    ))
    .severity(Severity::Medium)
    .confidence(Confidence::Medium)
    .evidence("model FLOP utilisation", ratio, Unit::Ratio)
    .evidence("operations per second and device", mfu.flops_per_second, Unit::FlopPerSecond)
    .evidence("time of kernels whose operations are known", mfu.coverage_ratio, Unit::Ratio)
    .at(rows)
    .do_this("It is a symptom: where the GPU is idle, the findings on idle time come first; where operations reach little of the peak while they run, those on kernels.")
    .do_this("Larger matrices (batch, sequence length), dimensions that are multiples of 128, a type of number that tensor cores compute with, fused attention.")
    .into()
}

/// A matrix product of 100 us with so many operations, on a device of 1 TFLOP/s, which could do 100
/// million.
#[cfg(test)]
fn scene(flops: u64) -> flopwatch_model::Timeline {
    let mut scene = crate::advice::scene::Scene::new();
    let operator = scene.operator("aten::mm", (0, 8));
    scene.number(operator, flopwatch_model::ColumnId::Flops, flops);
    scene.launch((1, 5), "gemm", (10, 100));
    let mut timeline = scene.build();
    timeline.capture.devices.push(Device {
        peak_flops: [("any".to_owned(), 1_000_000_000_000)].into(),
        ..Device::default()
    });
    timeline
}
