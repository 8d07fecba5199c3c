//! The texts that `--help` prints after options and commands: exit codes and examples.

pub(super) const FIRST_STEPS: &str = "\
A file that is there:  flopwatch open trace.json.gz
A first recording:     flopwatch record --duration 5 -- ./program";

pub(super) const RECORD_HELP: &str = "\
The command keeps its standard streams and signals and is never killed: when the window ends before it does, it runs on and \
the result is made beside it.

The profiler cuda needs no Nsight Systems: it records the command until its end, or for --duration, and says what it could not record \
and why. A program that was started with its library is recorded while it runs, window by window, by --attach-file.

Exit code: 1 when there is no recording or the window lacks the required events; otherwise, with --no-serve, the command's own.

Examples:
  flopwatch record --duration 5 -- python train.py
  flopwatch record --profiler cuda -- python train.py
  flopwatch record --attach-file /run/flopwatch/cuda.trace --duration 2
  flopwatch record -f session.yaml --no-serve --output result -- ./solver --steps 100";

pub(super) const EXPORT_HELP: &str = "\
Every event of the capture is in each format but json (the earliest 100,000), in exact nanoseconds; docs/formats.md describes them.

Examples:
  flopwatch export report.nsys-rep --to perfetto      open report.pftrace in https://ui.perfetto.dev
  flopwatch export timeline.h5 --to parquet -o events.parquet
  flopwatch export timeline.h5 --to csv --table samples";

pub(super) const DIAGNOSE_HELP: &str = "\
The capture is any file that `convert` reads. It is the analysis `advice`; docs/analyses/advice.md tells the rules.

Exit codes:
  0  diagnosed, with findings or without
  1  it failed; the message says why
  2  wrong usage
  3  a finding is as grave as --fail-on names

Examples:
  flopwatch diagnose timeline.h5
  flopwatch diagnose trace.json.gz -o advice.html
  flopwatch diagnose report.nsys-rep --format json --fail-on high";

pub(super) const OPEN_HELP: &str = "\
Captures are files that `convert` reads; of a folder each one in it. A file that cannot be read is refused before anything is served. \
Several are listed in the viewer, which compares any two of them.

Examples:
  flopwatch open trace.json.gz
  flopwatch open before.nsys-rep after.nsys-rep
  flopwatch open --no-browser captures/";

pub(super) const ANALYZE_HELP: &str = "\
Captures are files that `convert` reads; of a timeline file only what the analysis needs is read. `--list` tells the analyses and their \
parameters.

Examples:
  flopwatch analyze --list
  flopwatch analyze kernels-per-stream timeline.h5
  flopwatch analyze kernel-changes before.h5 after.h5 --param limit=20 --format csv -o changes.csv";

pub(super) const COMPARE_HELP: &str = "\
Captures are files that `convert` reads. Times are compared per iteration where both captures have some, and the verdict is held against \
their spread; docs/analyses/compare.md tells the rules. It is the analysis `compare`, whose further parameters `analyze compare --list` tells.

Exit codes:
  0  compared; nothing of what --fail-on names
  1  it failed; the message says why
  2  wrong usage
  3  what --fail-on names was found

Examples:
  flopwatch compare before.h5 after.h5
  flopwatch compare main.json.gz branch.json.gz --threshold-percent 3 --format html -o changes.html
  flopwatch compare before.nsys-rep after.nsys-rep --param skip_iterations=2 --fail-on any-change";

#[cfg(feature = "mcp")]
pub(super) const MCP_HELP: &str = "\
A client of the protocol starts this command and speaks with it; docs/mcp.md has the configuration of two of them. Its tools list captures, \
tell what one holds, diagnose it, compare two, run any analysis and give the events of a time range. Nothing outside of the folders and \
files is read, nothing is written, and every answer is bounded. Standard error has a line for each call.

Examples:
  flopwatch mcp                                       captures below the current folder
  flopwatch mcp ~/traces ~/baseline.nsys-rep
  claude mcp add flopwatch -- flopwatch mcp ~/traces";
