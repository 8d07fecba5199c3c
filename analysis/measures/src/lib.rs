//! Measures that analyses are made of. Each is a pure function of a timeline, and stands here once.
//!
//! | measures | modules |
//! |---|---|
//! | intervals and their algebra | [`interval`], [`range_tree`], [`enclosing`], [`holder`], [`bins`] |
//! | GPU work and what launched it | [`work`], [`gpu`], [`launch`], [`gap`], [`kernel_class`] |
//! | calls of the host | [`host_call`], [`api_call`], [`os_call`], [`thread_activity`] |
//! | iterations and the steady state | [`iteration`], [`steady_state`], [`pace`] |
//! | names of kernels and operations | [`kernel_name`], [`operation_name`], [`matrix_kernel`] |
//! | memory | [`pool`], [`requester`], [`reuse`], [`moved_bytes`] |
//! | collectives and ranks | [`collective`], [`rank_match`] |
//! | compilers | [`compiled`], [`hlo_program`], [`hlo_cost`], [`hlo_memory`], [`hlo_time`] |
//! | longest paths and stacks | [`critical_path`], [`flame`] |
//! | figures of profiled kernels | [`kernel_figures`], [`roofline`], [`speed_of_light`] |
//! | peaks of devices | [`data_sheet`] |
//! | statistics and comparison | [`significance`], [`counterpart`], [`largest`] |
//!
//! Invariants:
//!
//! - Times are integer nanoseconds; an interval holds its start and not its end.
//! - Searches whose length the nesting or repetition in a capture decides are bounded by constants
//!   next to them (`MAX_*`).
//! - The crate depends on the event model, and on `flopwatch-report` for what a measure shows of
//!   itself: its location in the timeline, its cells, and what was not captured. It knows no
//!   analysis.
//!
//! ```
//! use flopwatch_measures::interval::{Interval, Intervals};
//!
//! let work = Intervals::union_of([Interval::new(0, 10), Interval::new(5, 20)]);
//! let copies = Intervals::union_of([Interval::new(15, 30)]);
//! assert_eq!(work.len_ns(), 20);
//! assert_eq!(copies.subtract(&work).len_ns(), 10);
//! ```

pub mod api_call;
pub mod bins;
pub mod call_ranges;
pub mod collective;
mod communication;
pub mod compiled;
pub mod counterpart;
pub mod coverage;
pub mod critical_path;
pub mod data_sheet;
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
