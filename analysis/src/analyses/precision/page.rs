//! How people read it.

use flopwatch_model::ratio;
use flopwatch_report::page::{Page, Table, Unit};

use super::{PrecisionResult, TensorCoreSource};

pub(super) fn of(about: &str, result: &PrecisionResult) -> Page {
    let mut page = Page::new("Precision and tensor cores", about);
    page.not_captured.clone_from(&result.not_captured);
    if result.source.is_none() {
        return page;
    }
    page.tiles([
        (
            "Matrix products on tensor cores",
            result.tensor_core_ratio.into(),
            Unit::Ratio,
        ),
        (
            "Matrix products of kernel time",
            result.matrix_ratio.into(),
            Unit::Ratio,
        ),
        ("Unit not known", result.unknown_ns.into(), Unit::Ns),
        (
            "Could use them and does not",
            (!result.products.is_empty())
                .then_some(result.eligible_unused_ns)
                .into(),
            Unit::Ns,
        ),
        (
            "A dimension is no multiple of 16",
            ratio(result.misaligned_ns, result.product_ns).into(),
            Unit::Ratio,
        ),
        (
            "Compute capability",
            result.compute_capability.as_deref().into(),
            Unit::None,
        ),
    ]);
    let mut text = match result.source {
        Some(TensorCoreSource::Counters) => "The use of tensor cores is from counters of the tensor pipe.".to_owned(),
        _ => "The use of tensor cores is told by names of kernels.".to_owned(),
    };
    match result.has_tensor_cores {
        Some(true) => {}
        None if result.tensor_core_ns > 0 => {}
        Some(false) => text.push_str(" This GPU has no tensor cores: they came with compute capability 7.0."),
        None => text.push_str(" Whether the GPU has tensor cores is not known."),
    }
    page.text("", text);
    if !result.kernels.is_empty() {
        page.table(kernels(result));
    }
    if !result.products.is_empty() {
        page.table(products(result));
    }
    page
}

fn kernels(result: &PrecisionResult) -> Table {
    let columns = [
        ("Kernel", Unit::None),
        ("On", Unit::None),
        ("Type", Unit::None),
        ("Launches", Unit::None),
        ("Time", Unit::Ns),
        ("Tensor pipe", Unit::Percent),
    ];
    let mut table = Table::new("Kernels that multiply matrices", &columns);
    table.left_out = result.kernels_left_out;
    for kernel in &result.kernels {
        let cells = [
            kernel.name.as_str().into(),
            kernel.unit.label().into(),
            kernel.element_type.as_deref().into(),
            kernel.launches.into(),
            kernel.total_ns.into(),
            kernel.tensor_pipe_percent.into(),
        ];
        match kernel.longest {
            Some(place) => table.push_at(place, cells),
            None => table.push(cells),
        }
    }
    table.without_unknown();
    table
}

fn products(result: &PrecisionResult) -> Table {
    let columns = [
        ("Operator", Unit::None),
        ("Batch", Unit::None),
        ("m", Unit::None),
        ("n", Unit::None),
        ("k", Unit::None),
        ("Type", Unit::None),
        ("Multiples of", Unit::None),
        ("Eligible", Unit::None),
        ("Calls", Unit::None),
        ("GPU time", Unit::Ns),
        ("On tensor cores", Unit::Ratio),
        ("On CUDA cores", Unit::Ratio),
    ];
    let mut table = Table::new("Matrix products", &columns);
    "Dimensions should be multiples of 16, better of 128; below 8 numbers of 16 bits do not fit the 16 bytes that tensor cores load."
        .clone_into(&mut table.about);
    table.left_out = result.products_left_out;
    for row in &result.products {
        let cells = [
            row.operator.as_str().into(),
            row.batch.into(),
            row.m.into(),
            row.n.into(),
            row.k.into(),
            row.element_type.as_deref().into(),
            row.alignment.into(),
            row.eligible.into(),
            row.calls.into(),
            row.gpu_ns.into(),
            ratio(row.tensor_core_ns, row.gpu_ns).into(),
            ratio(row.cuda_core_ns, row.gpu_ns).into(),
        ];
        table.push_at(row.longest, cells);
    }
    table
}
