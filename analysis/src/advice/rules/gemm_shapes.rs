//! Matrix multiplications whose dimensions do not fit tensor cores.

use std::collections::HashMap;

use flopwatch_measures::enclosing::{LaunchedWork, Threads};
use flopwatch_measures::interval::Interval;
use flopwatch_measures::operator_flops::FlopFormula;
use flopwatch_model::{Category, ColumnId, Events, NameId};
use flopwatch_report::page::Unit;

use crate::advice::wording::{count, share, time};
use crate::advice::{Area, Confidence, Facts, FindingDraft, Rule, Severity, Threshold, Verdict};

const SHARE: Threshold = Threshold::percent("GPU time of such operators, of the window", 3, "ours");
const MULTIPLE: Threshold = Threshold::count(
    "what dimensions should be a multiple of",
    8,
    "NVIDIA's guide to matrix multiplication: 8 values of 16 bits are the 16 bytes that tensor cores load; multiples of 64 and 128 are faster yet",
);

/// Fires where matrices have dimensions that are not multiples of 8.
pub(super) static RULE: Rule = Rule {
    id: "gemm-shapes",
    title: "Matrices do not fit tensor cores",
    area: Area::Kernels,
    needs: &[&[Category::CpuOp]],
    of_gpu_work: true,
    thresholds: &[SHARE, MULTIPLE],
    evaluate,
    #[cfg(test)]
    captures: [
        || scene("[[1024,50257],[50257,768]]"),
        || scene("[[1024,50304],[50304,768]]"),
    ],
};

/// Operators of PyTorch that multiply matrices.
const OPERATORS: &[&str] = &[
    "aten::mm",
    "aten::addmm",
    "aten::bmm",
    "aten::baddbmm",
    "aten::_scaled_mm",
];

/// A matrix multiplication by its place among the operators; its name is written only of those that
/// are shown.
struct Product<'a>(&'a Events, usize);

impl From<Product<'_>> for String {
    fn from(Product(operators, at): Product<'_>) -> Self {
        let shapes = operators.text(ColumnId::InputShapes, at).unwrap_or_default();
        let shapes: Self = shapes.chars().take(80).collect();
        format!("GPU time of {} {shapes}", operators.name_of(at))
    }
}

fn evaluate(facts: &Facts<'_>) -> Verdict {
    let Some(operators) = facts.events(Category::CpuOp) else {
        return Verdict::Quiet;
    };
    let multiplies: Vec<bool> = operators
        .names
        .iter()
        .map(|name| OPERATORS.contains(&name.as_str()))
        .collect();
    if !multiplies.contains(&true) {
        return Verdict::Quiet;
    }
    let Some(column) = operators
        .columns
        .iter()
        .find(|column| column.id == ColumnId::InputShapes)
    else {
        return Verdict::abstain("the shapes of operators were not recorded; profile with record_shapes=True");
    };
    let mut known: HashMap<(NameId, usize), bool> = HashMap::new();
    let threads = Threads::of(facts.timeline);
    let launched = LaunchedWork::of(facts.timeline, &threads, &facts.work);
    let mut pieces = Vec::new();
    for (at, (name, row)) in operators.name.iter().zip(&operators.row).enumerate() {
        let shapes = column.values.get(at).and_then(|slot| usize::try_from(slot).ok());
        let Some(slot) = shapes.filter(|_| multiplies.get(name.index()).copied().unwrap_or(false)) else {
            continue;
        };
        let is_odd = known.entry((*name, slot)).or_insert_with(|| {
            let shapes = column.texts.get(slot).map_or("", String::as_str);
            is_odd(operators.name_of(at), shapes)
        });
        if !*is_odd {
            continue;
        }
        let (time, thread) = (Interval::of(operators, at), threads.of_row(*row));
        let busy = thread.map_or(0, |thread| launched.busy_ns(thread, time));
        pieces.push((busy, Product(operators, at), time, *row));
    }
    let busy = facts.shared(pieces.iter().map(|(busy, ..)| busy).sum());
    let window = facts.window.len();
    if !SHARE.reached(busy, window) {
        return Verdict::Quiet;
    }
    let number = u64::try_from(pieces.len()).unwrap_or(u64::MAX);
    FindingDraft::new(format!(
        "{} with a dimension that is no multiple of 8 took {} of GPU time ({} of the window).",
        count(number, "matrix multiplication", "matrix multiplications"),
        time(busy),
        share(busy, window)
    ))
    .severity(Severity::Medium)
    .confidence(Confidence::Medium)
    .evidence("their GPU time", busy, Unit::Ns)
    .at(facts.largest(pieces, Unit::Ns))
    .do_this(
        "Pad dimensions to multiples of 16, better of 128: vocabulary size, hidden sizes, batch times sequence length.",
    )
    .into()
}

/// Whether a dimension of the product is no multiple of 8.
fn is_odd(operator: &str, shapes: &str) -> bool {
    let product = FlopFormula::of(operator).and_then(|formula| formula.matrix_product(shapes));
    product.is_some_and(|product| product.alignment() < MULTIPLE.value)
}

#[cfg(test)]
fn scene(shapes: &str) -> flopwatch_model::Timeline {
    let mut scene = crate::advice::scene::Scene::new();
    let operator = scene.operator("aten::mm", (0, 10));
    scene.text(operator, ColumnId::InputShapes, shapes);
    scene.launch((2, 5), "gemm", (10, 90));
    scene.build()
}
