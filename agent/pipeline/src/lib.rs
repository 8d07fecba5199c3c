//! From a profiler's raw files to the published ones, in sandboxed children of the calling program:
//! what `flopwatch-agent` does on a node and `flopwatch` on any machine. It knows no cluster.
//!
//! | module | holds |
//! |---|---|
//! | [`products`] | what is run, one child after the other, and what comes of it |
//! | [`steps`], [`workplace`], [`folder`], [`disk`] | how a child is run: its bounds, its folder, the room on its disk |
//! | [`children`], [`reentry`] | what a program starts itself as: hidden subcommands of its command line, and processes before it has one |
//! | [`transform`], [`analysis`], [`disassembly`] | the work in a child: captures and samples into files, an analysis, text of machine code |
//! | [`fleet_rows`] | rows of the fleet, which a child makes of its timeline where the program has a writer of them |
//! | [`verify`], [`signs`], [`status_summary`] | whether a capture holds what was asked for, and its summary in a few lines: functions of data |
//! | [`derived`], [`artifact_file`] | results that are made on demand, and files as artifacts: name, output and media type of each |
//! | [`tools`], [`nsys_options`], [`gpus`], [`child`] | the machine's Nsight Systems and its options, samples of NVML, programs without a sandbox |
//! | [`failure`], [`sentence`] | why something failed, in words |

pub mod analysis;
pub mod artifact_file;
pub mod child;
pub mod children;
pub mod derived;
pub mod disassembly;
pub mod disk;
pub mod failure;
pub mod fleet_rows;
pub mod folder;
pub mod gpus;
pub mod nsys_options;
pub mod products;
pub mod reentry;
pub mod sentence;
pub mod signs;
pub mod status_summary;
pub mod steps;
pub mod tools;
pub mod transform;
pub mod verify;
pub mod workplace;
