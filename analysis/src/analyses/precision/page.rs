//! How people read it.

use flopwatch_model::ratio;
use flopwatch_report::page::{Page, Table, Tile, Unit};

use super::{PrecisionResult, TensorCoreSource};

pub(super) fn of(title: &str, about: &str, result: &PrecisionResult) -> Page {
    let mut page = Page::of(title, about, &result.not_captured);
    if result.source.is_none() {
        return page;
    }
    page.tiles([
        Tile::figure("Matrix products on tensor cores", Unit::Ratio, result.tensor_core_ratio),
        Tile::figure("Matrix products of kernel time", Unit::Ratio, result.matrix_ratio),
        Tile::figure("Unit not known", Unit::Ns, result.unknown_ns),
        Tile::figure(
            "Could use them and does not",
            Unit::Ns,
            (!result.products.is_empty()).then_some(result.eligible_unused_ns),
        ),
        Tile::figure(
            "A dimension is no multiple of 16",
            Unit::Ratio,
            ratio(result.misaligned_ns, result.product_ns),
        ),
        Tile::new("Compute capability", result.compute_capability.as_deref()),
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
    page.table_unless_empty(kernels(result));
    page.table_unless_empty(products(result));
    page
}

fn kernels(result: &PrecisionResult) -> impl Into<Table> {
    Table::of("Kernels that multiply matrices", &result.kernels)
        .left_out(result.kernels_left_out)
        .column("Kernel", |kernel| kernel.name.as_str())
        .column("On", |kernel| kernel.unit.label())
        .column("Type", |kernel| kernel.element_type.as_deref())
        .column("Launches", |kernel| kernel.launches)
        .figure("Time", Unit::Ns, |kernel| kernel.total_ns)
        .figure("Tensor pipe", Unit::Percent, |kernel| kernel.tensor_pipe_percent)
        .at(|kernel| kernel.longest)
        .without_unknown()
}

fn products(result: &PrecisionResult) -> impl Into<Table> {
    Table::of("Matrix products", &result.products)
        .about(
            "Dimensions should be multiples of 16, better of 128; below 8 numbers of 16 bits do not fit \
             the 16 bytes that tensor cores load.",
        )
        .left_out(result.products_left_out)
        .column("Operator", |row| row.operator.as_str())
        .column("Batch", |row| row.batch)
        .column("m", |row| row.m)
        .column("n", |row| row.n)
        .column("k", |row| row.k)
        .column("Type", |row| row.element_type.as_deref())
        .column("Multiples of", |row| row.alignment)
        .column("Eligible", |row| row.eligible)
        .column("Calls", |row| row.calls)
        .figure("GPU time", Unit::Ns, |row| row.gpu_ns)
        .figure("On tensor cores", Unit::Ratio, |row| {
            ratio(row.tensor_core_ns, row.gpu_ns)
        })
        .figure("On CUDA cores", Unit::Ratio, |row| ratio(row.cuda_core_ns, row.gpu_ns))
        .at(|row| row.longest)
}
