//! Matrix products by operator, shapes and type, with the kernels that they launched.

use std::collections::HashMap;

use flopwatch_measures::enclosing::{LaunchedWork, Threads};
use flopwatch_measures::interval::Interval;
use flopwatch_measures::matrix_kernel::{MatrixKernel, MatrixUnit};
use flopwatch_measures::operator_flops::{FlopFormula, MatrixProduct};
use flopwatch_measures::range_tree::innermost;
use flopwatch_measures::work::GpuWork;
use flopwatch_model::{Category, ColumnId, Events, NameId, Timeline, Values, index};

use super::{MIN_TENSOR_CORE_MAJOR, MatrixProductRow, PrecisionResult, TENSOR_CORE_ALIGNMENT, location};

/// Operator, shapes and types, by their places.
type Key = (NameId, Option<u64>, Option<u64>);
/// Dimensions and type of the numbers; `None` where they are not known.
type KnownProduct = Option<(MatrixProduct, Option<&'static str>)>;

/// The products of calls, worked out once per key.
struct Products {
    of_call: Vec<Option<Key>>,
    known: HashMap<Key, KnownProduct>,
}

impl Products {
    fn of(operators: &Events) -> Self {
        let formulas: Vec<Option<FlopFormula>> = operators.names.iter().map(|name| FlopFormula::of(name)).collect();
        let column = |id| operators.column(id);
        let (shapes, types) = (column(ColumnId::InputShapes), column(ColumnId::InputTypes));
        let mut known: HashMap<Key, KnownProduct> = HashMap::new();
        let calls = operators.name.iter().enumerate().map(|(at, name)| {
            let formula = formulas.get(name.index()).copied().flatten()?;
            let text = |values: Option<&Values>| values.and_then(|values| values.get(at));
            let key = (*name, text(shapes), text(types));
            let product = known.entry(key).or_insert_with(|| {
                let product = formula.matrix_product(operators.text(ColumnId::InputShapes, at)?)?;
                let types = operators.text(ColumnId::InputTypes, at);
                Some((product, types.and_then(|types| formula.element_type(types))))
            });
            product.map(|_| key)
        });
        let of_call = calls.collect();
        Self { of_call, known }
    }

    /// The product of the call at `at`.
    fn get(&self, at: usize) -> Option<(Key, MatrixProduct, Option<&'static str>)> {
        let key = self.of_call.get(at).copied().flatten()?;
        let (product, element_type) = self.known.get(&key).copied().flatten()?;
        Some((key, product, element_type))
    }
}

/// Time in ns of kernels that a call launched, and how they multiply.
#[derive(Default)]
struct KernelTimes {
    all: u64,
    tensor_core: u64,
    cuda_core: u64,
}

impl PrecisionResult {
    pub(super) fn products(&mut self, timeline: &Timeline, capability: Option<(u32, u32)>) {
        let Some(operators) = timeline.capture.events.get(&Category::CpuOp) else {
            return;
        };
        let products = Products::of(operators);
        if products.known.is_empty() {
            return;
        }
        let threads = Threads::of(timeline);
        let work = GpuWork::of(timeline);
        let launched = LaunchedWork::of_those(timeline, &threads, &work, |work| work.category == Category::CudaKernel);
        let kernels = timeline.capture.events.get(&Category::CudaKernel);
        let units: Vec<MatrixUnit> = kernels.map_or_else(Vec::new, |kernels| {
            let unit = |name: &String| MatrixKernel::of(name).map_or(MatrixUnit::Unknown, |kernel| kernel.unit);
            kernels.names.iter().map(unit).collect()
        });
        let unit_of = |at: u32| {
            let name = kernels.and_then(|kernels| kernels.name.get(index(at)));
            name.and_then(|name| units.get(name.index())).copied()
        };
        let mut rows: HashMap<Key, (MatrixProductRow, u64)> = HashMap::new();
        for at in innermost(operators, |at| products.get(at).is_some()) {
            let (Some((key, product, element_type)), Some(row)) = (products.get(at), operators.row.get(at)) else {
                continue;
            };
            let time = Interval::of(operators, at);
            let thread = threads.of_row(*row);
            let pieces = thread.map_or(&[][..], |thread| launched.inside(thread, time));
            if pieces.is_empty() {
                continue;
            }
            let mut spent = KernelTimes::default();
            for piece in pieces {
                let length = piece.time.len();
                spent.all += length;
                let piece = work.all().get(index(piece.work));
                match piece.and_then(|piece| unit_of(piece.at)) {
                    Some(MatrixUnit::TensorCore) => spent.tensor_core += length,
                    Some(MatrixUnit::CudaCore) => spent.cuda_core += length,
                    Some(MatrixUnit::Unknown) | None => {}
                }
            }
            let here = location(time, Some(*row));
            let (found, longest) = rows.entry(key).or_insert_with(|| {
                let found = MatrixProductRow {
                    operator: operators.name_of(at).to_owned(),
                    batch: product.batch,
                    m: product.m,
                    n: product.n,
                    k: product.k,
                    element_type: element_type.map(str::to_owned),
                    alignment: product.alignment(),
                    calls: 0,
                    gpu_ns: 0,
                    tensor_core_ns: 0,
                    cuda_core_ns: 0,
                    eligible: eligible(product, element_type, capability),
                    longest: here,
                };
                (found, 0)
            });
            found.calls += 1;
            found.gpu_ns += spent.all;
            found.tensor_core_ns += spent.tensor_core;
            found.cuda_core_ns += spent.cuda_core;
            if spent.all > *longest {
                *longest = spent.all;
                found.longest = here;
            }
        }
        self.tally(rows.into_values().map(|(row, _)| row).collect());
    }

    fn tally(&mut self, products: Vec<MatrixProductRow>) {
        self.products = products;
        self.products
            .sort_by_key(|row| (std::cmp::Reverse(row.gpu_ns), row.longest.start_ns));
        for row in &self.products {
            self.product_ns += row.gpu_ns;
            if row.alignment < TENSOR_CORE_ALIGNMENT {
                self.misaligned_ns += row.gpu_ns;
            }
            if row.eligible == Some(true) {
                self.eligible_unused_ns += row.cuda_core_ns;
            }
        }
    }
}

/// Whether tensor cores of a GPU of that compute capability can do it (CUDA C++ Programming Guide,
/// tensor core data types).
fn eligible(product: MatrixProduct, element_type: Option<&str>, capability: Option<(u32, u32)>) -> Option<bool> {
    let (element_type, capability) = (element_type?, capability?);
    let knows = match element_type {
        "fp16" => capability >= (MIN_TENSOR_CORE_MAJOR, 0),
        "int8" => capability >= (7, 2),
        // fp32 as TF32.
        "bf16" | "fp32" => capability >= (8, 0),
        "fp8" => capability >= (8, 9),
        // Those for data centres alone.
        "fp64" => matches!(capability, (8..=10, 0)),
        _ => return None,
    };
    Some(knows && !product.is_vector())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_is_eligible_from_the_first_gpu_on_whose_tensor_cores_know_its_type() {
        let product = |m| MatrixProduct {
            batch: 1,
            m,
            n: 64,
            k: 64,
        };
        for (element_type, before, first) in [
            ("fp16", (6, 1), (7, 0)),
            ("int8", (7, 0), (7, 2)),
            ("bf16", (7, 5), (8, 0)),
            ("fp32", (7, 5), (8, 0)),
            ("fp8", (8, 6), (8, 9)),
            ("fp64", (7, 5), (8, 0)),
        ] {
            let of = |m, capability| eligible(product(m), Some(element_type), Some(capability));
            assert_eq!(
                [of(64, before), of(64, first)],
                [Some(false), Some(true)],
                "{element_type}"
            );
            assert_eq!(of(1, first), Some(false), "{element_type}: a product with a vector");
        }
        // GPUs for games have none for fp64.
        assert_eq!(eligible(product(64), Some("fp64"), Some((8, 6))), Some(false));
        // What is not known is not judged.
        assert_eq!(eligible(product(64), Some("int32"), Some((8, 0))), None);
        assert_eq!(eligible(product(64), None, Some((8, 0))), None);
        assert_eq!(eligible(product(64), Some("fp16"), None), None);
    }
}
