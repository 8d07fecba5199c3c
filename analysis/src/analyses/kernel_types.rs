//! What GPUs ran, by class and by name.

use std::collections::BTreeMap;

use flopwatch_measures::exclusive_time::BusyByClass;
use flopwatch_measures::gpu::Gpu;
use flopwatch_measures::kernel_class::WorkClass;
use flopwatch_measures::work::{GPU_WORK, GpuWork, NAMED_WORK};
use flopwatch_model::{Category, Figures, Needs, Timeline, approximate, figures_by_key, index, listed, ratio};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::{Bars, Page, Table, Unit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::definition::{Analysis, AnalysisError};
use crate::group::Group;
use crate::input::Inputs;

/// Time of each class of GPU work, and the kernels, copies and memsets that take most of it.
#[derive(Debug)]
pub struct KernelTypes;

/// Parameters of [`KernelTypes`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct KernelTypesParams {
    /// Most names of each class; the rest is summed up.
    #[schemars(range(min = 1, max = 10_000))]
    pub limit: u32,
    /// A class's list ends with the name by which it has this share of the class's time, from 0
    /// to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub duration_ratio: f64,
}

impl Default for KernelTypesParams {
    fn default() -> Self {
        Self {
            limit: 10,
            duration_ratio: 1.0,
        }
    }
}

/// The result of the analysis `kernel-types`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct TypesOfWork {
    /// Each class of each GPU.
    pub gpus: Vec<ClassOfGpu>,
    /// Each class over all GPUs, with its names.
    pub classes: Vec<ClassOfWork>,
    /// Parts of the result that the capture has no data for, each with the reason.
    pub not_captured: Vec<NotCaptured>,
}

/// A class of work on one GPU.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ClassOfGpu {
    /// Which GPU.
    pub gpu: Gpu,
    /// Which class.
    pub class: WorkClass,
    /// Pieces of work.
    pub gpu_ops: u64,
    /// Sum of their lengths in ns.
    pub sum_ns: u64,
    /// Time in ns in which at least one of them ran.
    pub busy_ns: u64,
    /// `busy_ns` of the time in which the GPU ran anything; null where it ran nothing. Classes
    /// overlap, so these add up to more than 1.
    pub busy_ratio: Option<f64>,
}

/// A class of work on all GPUs.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ClassOfWork {
    /// Which class.
    pub class: WorkClass,
    /// Pieces of work.
    pub gpu_ops: u64,
    /// Sum of their lengths in ns.
    pub sum_ns: u64,
    /// `sum_ns` of the sum over all classes; null where nothing ran.
    pub sum_ratio: Option<f64>,
    /// Those names that take most time, the first the most.
    pub names: Vec<NamedWork>,
    /// Further names.
    pub other_names: u64,
    /// Pieces of work of further names.
    pub other_gpu_ops: u64,
    /// Sum of their lengths in ns.
    pub other_sum_ns: u64,
}

/// Work of one name.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct NamedWork {
    /// Name of the work.
    pub name: String,
    /// Category of the work.
    pub category: Category,
    /// How often it ran.
    pub gpu_ops: u64,
    /// Sum of its lengths in ns.
    pub sum_ns: u64,
    /// `sum_ns` of its class; null where the class took no time.
    pub class_ratio: Option<f64>,
    /// Mean length in ns.
    pub mean_ns: f64,
    /// Median length in ns; between two middle ones, their mean.
    pub median_ns: f64,
    /// Shortest in ns.
    pub min_ns: u64,
    /// Longest in ns.
    pub max_ns: u64,
    /// Sample standard deviation in ns; null of a single one.
    pub deviation_ns: Option<f64>,
}

/// Sample standard deviation (n − 1); `None` of fewer than two values, or of squares that do not
/// fit.
pub(crate) fn deviation(figures: &Figures) -> Option<f64> {
    let count = u128::from(figures.count);
    if count < 2 || figures.squares == u128::MAX {
        return None;
    }
    // n·Σx² − (Σx)², exact in integers where it fits, is n·(n − 1) times the variance.
    let squares = figures.squares.checked_mul(count)?;
    let spread = squares.checked_sub(figures.total.checked_mul(figures.total)?)?;
    Some((approximate(spread) / approximate(count) / approximate(count - 1)).sqrt())
}

fn narrow(total: u128) -> u64 {
    u64::try_from(total).unwrap_or(u64::MAX)
}

impl NamedWork {
    fn of(name: &str, category: Category, figures: &Figures) -> Self {
        Self {
            name: name.to_owned(),
            category,
            gpu_ops: figures.count,
            sum_ns: narrow(figures.total),
            class_ratio: None,
            mean_ns: approximate(figures.total) / approximate(figures.count.into()),
            median_ns: figures.median().unwrap_or(0.0),
            min_ns: figures.min,
            max_ns: figures.max,
            deviation_ns: deviation(figures),
        }
    }
}

impl ClassOfWork {
    fn of(class: WorkClass, mut names: Vec<NamedWork>, total_ns: u64, params: &KernelTypesParams) -> Self {
        names.sort_by(|a, b| b.sum_ns.cmp(&a.sum_ns).then_with(|| a.name.cmp(&b.name)));
        let sum = |names: &[NamedWork]| {
            let gpu_ops = names.iter().map(|name| name.gpu_ops).sum::<u64>();
            (gpu_ops, names.iter().map(|name| name.sum_ns).sum::<u64>())
        };
        let (gpu_ops, sum_ns) = sum(&names);
        for name in &mut names {
            name.class_ratio = ratio(name.sum_ns, sum_ns);
        }
        let (mut shown, mut shown_ns) = (0, 0);
        for name in names.iter().take(index(params.limit)) {
            shown += 1;
            shown_ns += name.sum_ns;
            if ratio(shown_ns, sum_ns).is_some_and(|share| share >= params.duration_ratio) {
                break;
            }
        }
        let others = names.split_off(shown);
        let (other_gpu_ops, other_sum_ns) = sum(&others);
        Self {
            class,
            gpu_ops,
            sum_ns,
            sum_ratio: ratio(sum_ns, total_ns),
            names,
            other_names: u64::try_from(others.len()).unwrap_or(u64::MAX),
            other_gpu_ops,
            other_sum_ns,
        }
    }
}

impl KernelTypes {
    /// Of `timeline`, of which [`GPU_WORK`], names and rows were read.
    pub fn of(timeline: &Timeline, params: &KernelTypesParams) -> TypesOfWork {
        let mut classes: BTreeMap<WorkClass, Vec<NamedWork>> = BTreeMap::new();
        for category in GPU_WORK.iter().copied() {
            let Some(events) = timeline.capture.events.get(&category) else {
                continue;
            };
            let keys = u32::try_from(events.names.len()).unwrap_or(u32::MAX);
            let figures = figures_by_key(keys, &events.name, listed(&events.duration_ns));
            for (name, figures) in events.names.iter().zip(&figures) {
                if let Some(class) = WorkClass::of(category, name).filter(|_| figures.count > 0) {
                    classes
                        .entry(class)
                        .or_default()
                        .push(NamedWork::of(name, category, figures));
                }
            }
        }
        let total_ns = classes.values().flatten().map(|name| name.sum_ns).sum();
        let classes = classes
            .into_iter()
            .map(|(class, names)| ClassOfWork::of(class, names, total_ns, params));
        TypesOfWork {
            classes: classes.collect(),
            gpus: classes_of_gpus(timeline),
            not_captured: NotCaptured::unless_any(&timeline.capture, GPU_WORK, "kernels, copies and memsets")
                .or_else(|| NotCaptured::inside_graphs(&timeline.capture, "kinds of kernels in graphs"))
                .into_iter()
                .collect(),
        }
    }
}

fn classes_of_gpus(timeline: &Timeline) -> Vec<ClassOfGpu> {
    let mut rows = Vec::new();
    for (gpu, work) in GpuWork::of(timeline).by_gpu(timeline) {
        let busy = BusyByClass::of(&work);
        let any_ns = busy.any().len_ns();
        for class in WorkClass::ALL {
            let of_class = work.all().iter().filter(|work| work.class == class);
            let gpu_ops = u64::try_from(of_class.clone().count()).unwrap_or(u64::MAX);
            let busy_ns = busy.class(class).len_ns();
            if gpu_ops > 0 {
                rows.push(ClassOfGpu {
                    gpu,
                    class,
                    gpu_ops,
                    sum_ns: of_class.map(|work| work.time.len()).sum(),
                    busy_ns,
                    busy_ratio: ratio(busy_ns, any_ns),
                });
            }
        }
    }
    rows
}

impl Analysis for KernelTypes {
    const NAME: &'static str = "kernel-types";
    const VERSION: u32 = 2;
    const ABOUT: &'static str =
        "Computation, communication and memory work of GPUs, and the names that take most of each.";
    const TITLE: &'static str = "Kernel types";
    const GROUP: Group = Group::GpuTime;
    const NEEDS: Needs = NAMED_WORK;
    type Params = KernelTypesParams;
    type Output = TypesOfWork;

    fn run(inputs: &Inputs<'_>, params: &KernelTypesParams) -> Result<TypesOfWork, AnalysisError> {
        Ok(Self::of(inputs.first(), params))
    }

    fn page(output: &TypesOfWork) -> Result<Page, AnalysisError> {
        let mut page = Page::of(Self::TITLE, Self::ABOUT, &output.not_captured);
        page.bars(
            Bars::of("Sum of lengths per class", Unit::Ns, &output.classes, |class| {
                class.class.name().to_owned()
            })
            .series("sum", |class| class.sum_ns),
        );
        page.table(gpu_table(output));
        for class in &output.classes {
            page.table(name_table(class));
        }
        Ok(page)
    }
}

fn gpu_table(output: &TypesOfWork) -> impl Into<Table> {
    Table::of("Classes per GPU", &output.gpus)
        .column("GPU", |row| row.gpu.label())
        .column("Class", |row| row.class.name())
        .column("GPU ops", |row| row.gpu_ops)
        .figure("Sum", Unit::Ns, |row| row.sum_ns)
        .figure("Busy", Unit::Ns, |row| row.busy_ns)
        .figure("Share of busy time", Unit::Ratio, |row| row.busy_ratio)
}

fn name_table(class: &ClassOfWork) -> impl Into<Table> {
    let ns = Unit::Ns;
    let about = match class.other_names {
        0 => String::new(),
        _ => format!("Other names ran {} times.", class.other_gpu_ops),
    };
    Table::of(class.class.name(), &class.names)
        .about(about)
        .left_out(class.other_names)
        .column("Name", |name| name.name.as_str())
        .figure("Share of class", Unit::Ratio, |name| name.class_ratio)
        .figure("Sum", ns, |name| name.sum_ns)
        .column("GPU ops", |name| name.gpu_ops)
        .figure("Avg", ns, |name| name.mean_ns)
        .figure("Med", ns, |name| name.median_ns)
        .figure("Min", ns, |name| name.min_ns)
        .figure("Max", ns, |name| name.max_ns)
        .figure("StdDev", ns, |name| name.deviation_ns)
}

#[cfg(test)]
mod tests {
    use flopwatch_analysis_testing::Trace;

    use super::*;

    fn trace() -> Timeline {
        let mut trace = Trace::new();
        let stream = trace.stream(1, 0, 7);
        for (name, start, end) in [("gemm", 0, 10), ("gemm", 10, 30), ("relu", 30, 35), ("add", 35, 36)] {
            trace.kernel(stream, name, start, end);
        }
        trace.event(Category::CudaMemset, stream, "Memset", 36, 40);
        trace.build()
    }

    #[test]
    fn names_of_a_class_are_ranked_by_their_time() {
        let types = KernelTypes::of(&trace(), &KernelTypesParams::default());
        let compute = &types.classes[0];
        assert_eq!(
            (compute.class, compute.gpu_ops, compute.sum_ns),
            (WorkClass::Compute, 4, 36)
        );
        assert_eq!(compute.sum_ratio, Some(0.9));
        let gemm = &compute.names[0];
        assert_eq!((gemm.name.as_str(), gemm.gpu_ops, gemm.sum_ns), ("gemm", 2, 30));
        assert_eq!(
            (gemm.mean_ns, gemm.median_ns, gemm.min_ns, gemm.max_ns),
            (15.0, 15.0, 10, 20)
        );
        // Of 10 and 20: the square root of 50.
        assert!((gemm.deviation_ns.unwrap() - 50_f64.sqrt()).abs() < 1e-9);
        assert_eq!(compute.names[1].deviation_ns, None);
        let memory = &types.gpus[1];
        assert_eq!(
            (memory.class, memory.busy_ns, memory.busy_ratio),
            (WorkClass::Memory, 4, Some(0.1))
        );
    }

    /// HolisticTraceAnalysis takes the figures of sums per name once there are more names than fit:
    /// mean, shortest and longest of `gemm` are 30 for it.
    #[test]
    fn figures_of_a_name_are_those_of_its_works_whatever_the_limit() {
        let params = KernelTypesParams {
            limit: 1,
            ..KernelTypesParams::default()
        };
        let compute = KernelTypes::of(&trace(), &params).classes.remove(0);
        let gemm = &compute.names[0];
        assert_eq!((gemm.mean_ns, gemm.min_ns, gemm.max_ns), (15.0, 10, 20));
    }

    #[test]
    fn a_list_ends_at_its_limit_or_at_its_share_of_the_time() {
        let names = |limit, duration_ratio| {
            let params = KernelTypesParams { limit, duration_ratio };
            let compute = KernelTypes::of(&trace(), &params).classes.remove(0);
            (
                compute.names.len(),
                compute.other_names,
                compute.other_gpu_ops,
                compute.other_sum_ns,
            )
        };
        assert_eq!(names(2, 1.0), (2, 1, 1, 1));
        // gemm alone is 30 of 36.
        assert_eq!(names(10, 0.8), (1, 2, 2, 6));
        assert_eq!(names(10, 1.0), (3, 0, 0, 0));
    }
}
