//! What analyses are made of: intervals and their algebra, the work of GPUs and what launched it, calls of the host, iterations, names,
//! statistics. Each is a pure function of a timeline, and stands here once.
//!
//! The crate depends on the event model, and on pages for what a measure shows of itself: its
//! place in the timeline, its cells, and what was not captured. It knows no analysis.

pub mod api_call;
pub mod bins;
pub mod call_ranges;
pub mod collective;
mod communication;
pub mod compiled;
pub mod counterpart;
pub mod coverage;
pub mod critical_path;
pub mod enclosing;
pub mod exclusive_time;
pub mod flame;
pub mod gap;
pub mod gpu;
pub mod hlo_cost;
pub mod hlo_memory;
pub mod hlo_program;
pub mod hlo_time;
pub mod holder;
pub mod host_call;
pub mod interval;
pub mod iteration;
pub mod kernel_class;
pub mod kernel_figures;
pub mod kernel_name;
pub mod largest;
pub mod launch;
pub mod matrix_kernel;
pub mod moved_bytes;
pub mod operation_name;
pub mod operator_flops;
pub mod os_call;
pub mod pace;
pub mod pool;
pub mod range_tree;
pub mod rank_match;
pub mod record;
pub mod requester;
pub mod reuse;
pub mod roofline;
pub mod significance;
pub mod speed_of_light;
pub mod steady_state;
pub mod thread_activity;
pub mod work;
