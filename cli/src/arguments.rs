//! The command line of `kubectl flopwatch`, parsed by clap. The doc comment of an argument is its
//! text in `--help`.

mod names;
mod profiler;
mod recent;
mod schedule;
mod times;
mod top;
mod words;

use std::path::PathBuf;

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use flopwatch_api::artifact::Output;
use flopwatch_api::profiler::{CaptureRange, CudaGraphTrace, ProfilerType, TraceCategory, parse_capture_range};
use flopwatch_api::session::DEFAULT_DURATION_SECONDS;
use flopwatch_model::Category;

pub use names::{CaptureName, PodName, SessionName};
pub use profiler::NcuArguments;
pub use recent::RecentArguments;
pub use schedule::{ScheduleArguments, ScheduleName};
pub use times::{Span, Window};
pub use top::{TopArguments, TopBy};
pub use words::ReachArguments;

/// The exit codes, as `--help` lists them.
const EXIT_CODES: &str = "Exit codes:
  0    done
  1    it failed; the message says why and what helps
  2    wrong usage
  3    the session ended without success; compare: what --fail-on names was found
  4    doctor: something keeps the pod from being profiled with what it is prepared for
  5    the session had not ended when --timeout was over
  130  interrupted; a session that runs goes on";

/// Profile GPU pods in place: ask for a profile, follow it, fetch it, look at it.
#[derive(Debug, Parser)]
#[command(
    name = "kubectl-flopwatch",
    bin_name = "kubectl flopwatch",
    version,
    about,
    after_help = EXIT_CODES,
    disable_help_subcommand = true
)]
pub struct Cli {
    /// How the cluster is reached.
    #[command(flatten)]
    pub connection: ConnectionArguments,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// How the cluster is reached; the same words as kubectl's.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Cluster")]
pub struct ConnectionArguments {
    /// Namespace; default: that of the kubeconfig's context
    #[arg(short, long, global = true, value_name = "NAMESPACE")]
    pub namespace: Option<String>,
    /// Context of the kubeconfig; default: the current one
    #[arg(long, global = true, value_name = "CONTEXT")]
    pub context: Option<String>,
    /// Kubeconfig file; default: $KUBECONFIG, else ~/.kube/config
    #[arg(long, global = true, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Namespace that Flopwatch is installed in
    #[arg(
        long,
        global = true,
        value_name = "NAMESPACE",
        env = "FLOPWATCH_NAMESPACE",
        default_value = "flopwatch-system"
    )]
    pub flopwatch_namespace: String,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Profile a pod
    Profile(Box<ProfileArguments>),
    /// Take what a pod's flight recorder keeps of its last seconds: there is no window to wait for
    Recent(RecentArguments),
    /// List sessions, the newest first
    #[command(visible_alias = "list")]
    Sessions(SessionsArguments),
    /// List schedules, say what one will do next and why it leaves pods out, suspend or resume it
    #[command(visible_alias = "schedules")]
    Schedule(ScheduleArguments),
    /// Say what became of a session
    Describe(DescribeArguments),
    /// Wait for a session's end, with a progress bar
    #[command(visible_alias = "wait")]
    Watch(WatchArguments),
    /// End a session that runs, and keep what it recorded
    Stop(StopArguments),
    /// Fetch what a session published
    Fetch(FetchArguments),
    /// Fetch a timeline and serve it with the viewer on this machine
    Open(OpenArguments),
    /// Compare two sessions, before and after a change
    Compare(CompareArguments),
    /// Say what the fleet spends its time on, over all captures of a time
    Top(TopArguments),
    /// Serve the gateway on this machine for clients that know no tokens
    Proxy(ProxyArguments),
    /// Serve sessions to an agent: the Model Context Protocol on standard input and output
    Mcp(McpArguments),
    /// Say whether a pod can be profiled, what is missing, and what to do
    Doctor(DoctorArguments),
    /// Print a script that completes this program's command line
    Completion {
        /// For which shell; `kubectl` for completion within kubectl's own
        shell: CompletionShell,
    },
}

/// What scripts for completion are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CompletionShell {
    /// Bash, for the program `kubectl-flopwatch`.
    Bash,
    /// Elvish, likewise.
    Elvish,
    /// Fish, likewise.
    Fish,
    /// PowerShell, likewise.
    Powershell,
    /// Zsh, likewise.
    Zsh,
    /// kubectl's own completion in every shell: a program named `kubectl_complete-flopwatch` on the
    /// PATH.
    Kubectl,
}

/// How objects are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// As the API has them, in JSON.
    Json,
    /// As the API has them, in YAML.
    Yaml,
    /// A table with further columns.
    Wide,
    /// `TYPE/NAME` alone.
    Name,
}

/// How objects are printed.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct FormatArguments {
    /// How to print; default: for people
    #[arg(short, long, value_name = "FORMAT")]
    pub output: Option<Format>,
}

/// Where a session is only asked for, and not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DryRun {
    /// Print what would be sent.
    Client,
    /// Let the API server check it, and make nothing.
    Server,
}

/// When the window opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Start {
    /// As soon as the target runs and its turn comes.
    Now,
    /// Before the program's first instruction; of a template or a copy alone.
    ContainerStart,
}

/// What to profile, and how.
#[derive(Debug, Default, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct ProfileArguments {
    /// The pod: NAME or pod/NAME
    #[arg(
        value_name = "POD",
        required_unless_present = "template",
        conflicts_with = "template"
    )]
    pub pod: Option<PodName>,
    /// Manifest of a pod to make instead, prepared, run once and deleted with the session; `-` is
    /// standard input
    #[arg(long, value_name = "FILE")]
    pub template: Option<PathBuf>,
    /// Profile a copy of the pod, made for it, run once and deleted afterwards: the pod itself is
    /// not touched
    #[arg(long, requires = "pod", conflicts_with = "template")]
    pub replica: bool,
    /// Make the session though there is no such pod: it waits for one
    #[arg(long, requires = "pod")]
    pub wait_for_pod: bool,
    /// When the window opens; default: now, and before the program of a template or a copy begins
    #[arg(long, value_enum, value_name = "WHEN")]
    pub start: Option<Start>,
    /// Container; may be repeated. Default: those that ask for a GPU, else those that were prepared
    #[arg(short, long = "container", value_name = "CONTAINER")]
    pub containers: Vec<String>,
    /// Length of the window, such as 10s or 2m
    #[arg(long, default_value_t = Window(DEFAULT_DURATION_SECONDS), value_name = "TIME")]
    pub duration: Window,
    /// What to profile with
    #[arg(long, value_parser = profiler::profiler(), default_value = ProfilerType::Auto.word())]
    pub profiler: ProfilerType,
    /// Categories that it must be able to record, such as cuda,nvtx,osrt
    #[arg(long, value_delimiter = ',', value_name = "CATEGORY", value_parser = category)]
    pub trace: Vec<TraceCategory>,
    /// What Nsight Compute profiles.
    #[command(flatten)]
    pub ncu: NcuArguments,
    /// How Nsight Systems must trace CUDA graphs: graph (a row per launch) or node (every kernel)
    #[arg(long, value_name = "MODE", value_parser = graph_mode)]
    pub cuda_graph_trace: Option<CudaGraphTrace>,
    /// Record these ranges of the program alone: cuda-profiler-api, nvtx or nvtx:NAME, with xCOUNT
    /// for several, such as nvtx:step,x4
    #[arg(long, value_name = "RANGE", value_parser = parse_capture_range)]
    pub capture_range: Option<CaptureRange>,
    /// Sample hardware counters of the GPUs, so often in a second
    #[arg(long, value_name = "HERTZ", num_args = 0..=1, default_missing_value = "10000", value_parser = clap::value_parser!(i32).range(10..=200_000))]
    pub gpu_metrics: Option<i32>,
    /// Categories of the timeline that must hold events for success, such as cuda_kernel,nvtx_range
    #[arg(long, value_delimiter = ',', value_name = "CATEGORY", value_parser = required_category)]
    pub require: Vec<Category>,
    /// What to publish: timeline, summary, raw
    #[arg(long, value_delimiter = ',', value_name = "OUTPUT", value_parser = output)]
    pub outputs: Vec<Output>,
    /// Name of the session; default: made of the pod's
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Wait for its end, with a progress bar
    #[arg(long)]
    pub wait: bool,
    /// Longest wait, such as 10m; 0: for ever
    #[arg(long, default_value = "0", value_name = "TIME")]
    pub timeout: Span,
    /// Wait for its end, and serve the timeline with the viewer on this machine
    #[arg(long)]
    pub open: bool,
    /// Make nothing: print the session (client) or let the API server check it (server)
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "client", conflicts_with_all = ["wait", "open"])]
    pub dry_run: Option<DryRun>,
    /// How the session is printed.
    #[command(flatten)]
    pub format: FormatArguments,
    /// How the timeline is fetched.
    #[command(flatten)]
    pub gateway: GatewayArguments,
}

/// Which sessions to list.
#[derive(Debug, Args)]
pub struct SessionsArguments {
    /// Of all namespaces
    #[arg(short = 'A', long)]
    pub all_namespaces: bool,
    /// With these labels, such as app=train
    #[arg(short = 'l', long, value_name = "LABELS")]
    pub selector: Option<String>,
    /// How they are printed.
    #[command(flatten)]
    pub format: FormatArguments,
}

/// Which session to describe.
#[derive(Debug, Args)]
pub struct DescribeArguments {
    /// The session: NAME or profilingsession/NAME
    #[arg(value_name = "SESSION")]
    pub session: SessionName,
    /// How it is printed.
    #[command(flatten)]
    pub format: FormatArguments,
}

/// Which session to wait for.
#[derive(Debug, Args)]
pub struct WatchArguments {
    /// The session: NAME or profilingsession/NAME
    #[arg(value_name = "SESSION")]
    pub session: SessionName,
    /// Longest wait, such as 10m; 0: for ever
    #[arg(long, default_value = "0", value_name = "TIME")]
    pub timeout: Span,
}

/// Which session to end.
#[derive(Debug, Args)]
pub struct StopArguments {
    /// The session: NAME or profilingsession/NAME
    #[arg(value_name = "SESSION")]
    pub session: SessionName,
    /// Throw away what it recorded
    #[arg(long)]
    pub discard: bool,
}

/// What to fetch, and where to.
#[derive(Debug, Args)]
pub struct FetchArguments {
    /// The session: NAME or profilingsession/NAME
    #[arg(value_name = "SESSION")]
    pub session: SessionName,
    /// Artifact, such as timeline.h5; may be repeated. Default: all but raw ones
    #[arg(long = "artifact", value_name = "NAME")]
    pub artifacts: Vec<String>,
    /// Capture; default: all that the session has
    #[arg(long, value_name = "NAME")]
    pub capture: Option<String>,
    /// Folder, or file where one artifact is fetched; default: a folder named after the session
    #[arg(short, long, value_name = "PATH", value_parser = fetched_path())]
    pub output: Option<PathBuf>,
    /// Replace files that are there
    #[arg(long)]
    pub force: bool,
    /// How they are fetched.
    #[command(flatten)]
    pub gateway: GatewayArguments,
}

/// What to show.
#[derive(Debug, Args)]
pub struct OpenArguments {
    /// The session: NAME or profilingsession/NAME
    #[arg(value_name = "SESSION")]
    pub session: SessionName,
    /// Capture; needed where the session has several
    #[arg(long, value_name = "NAME")]
    pub capture: Option<String>,
    /// Port on 127.0.0.1; 0: any that is free
    #[arg(long, default_value_t = 0, value_name = "PORT")]
    pub port: u16,
    /// How the timeline is fetched.
    #[command(flatten)]
    pub gateway: GatewayArguments,
}

/// What to compare.
#[derive(Debug, Args)]
pub struct CompareArguments {
    /// The session before the change: NAME or profilingsession/NAME
    #[arg(value_name = "BEFORE")]
    pub before: SessionName,
    /// The session after it
    #[arg(value_name = "AFTER")]
    pub after: SessionName,
    /// Capture of the first; needed where it has several
    #[arg(long, value_name = "NAME")]
    pub before_capture: Option<CaptureName>,
    /// Capture of the second; needed where it has several
    #[arg(long, value_name = "NAME")]
    pub after_capture: Option<CaptureName>,
    /// Change of the time of an iteration, in percent, from which on it is a regression or an
    /// improvement; default: 5
    #[arg(long, value_name = "PERCENT")]
    pub threshold_percent: Option<f64>,
    /// What ends with exit code 3
    #[arg(long, value_enum, default_value_t)]
    pub fail_on: FailOn,
    /// How it is printed.
    #[command(flatten)]
    pub format: FormatArguments,
    /// How the result is asked for.
    #[command(flatten)]
    pub gateway: GatewayArguments,
}

/// Which verdict of a comparison ends with exit code 3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// A regression.
    #[default]
    Regression,
    /// Anything but that nothing changed: a regression, an improvement, and what cannot be told.
    AnyChange,
    /// None.
    Never,
}

/// Where to serve the gateway.
#[derive(Debug, Args)]
pub struct ProxyArguments {
    /// Port on 127.0.0.1; 0: any that is free
    #[arg(long, default_value_t = 8080, value_name = "PORT")]
    pub port: u16,
    /// How the gateway is reached.
    #[command(flatten)]
    pub gateway: GatewayArguments,
}

/// What an agent's results come through.
#[derive(Debug, Args)]
pub struct McpArguments {
    /// How the gateway is reached.
    #[command(flatten)]
    pub gateway: GatewayArguments,
}

/// Which pod to look at.
#[derive(Debug, Args)]
pub struct DoctorArguments {
    /// The pod: NAME or pod/NAME
    #[arg(value_name = "POD")]
    pub pod: PodName,
    /// Container; default: those that a session would take
    #[arg(short, long, value_name = "CONTAINER")]
    pub container: Option<String>,
    /// How to print it
    #[arg(short, long, value_name = "FORMAT", value_parser = ["json", "yaml"])]
    pub output: Option<String>,
}

/// How the gateway is reached. By default through a port-forward to one of its pods.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Gateway")]
pub struct GatewayArguments {
    /// Address that it has outside of the cluster, as `https://HOST`; default: a port-forward to
    /// one of its pods
    #[arg(long, value_name = "URL", env = "FLOPWATCH_GATEWAY")]
    pub gateway: Option<String>,
    /// PEM file with the authority of its certificate; default: what the cluster says, and the
    /// system's with --gateway
    #[arg(long, value_name = "FILE")]
    pub gateway_ca: Option<PathBuf>,
    /// Token to show to it; default: the kubeconfig's
    #[arg(long, value_name = "TOKEN", env = "FLOPWATCH_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
}

/// Where what is fetched goes. The mere name of a format is refused: with other subcommands it says
/// how to print.
fn fetched_path() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| match path.to_str() {
        Some(name) if Format::from_str(name, true).is_ok() => Err(format!(
            "{name} is a format, and files are fetched as they are; a path of that name is ./{name}"
        )),
        _ => Ok(path),
    })
}

fn category(name: &str) -> Result<TraceCategory, String> {
    let known = TraceCategory::ALL.map(TraceCategory::as_str).join(", ");
    TraceCategory::from_name(name).ok_or_else(|| format!("there are {known}"))
}

fn graph_mode(name: &str) -> Result<CudaGraphTrace, String> {
    CudaGraphTrace::from_name(name).ok_or_else(|| "there are graph and node".to_owned())
}

fn required_category(name: &str) -> Result<Category, String> {
    let known: Vec<&str> = Category::ALL.iter().map(|category| category.name()).collect();
    Category::from_name(name).ok_or_else(|| format!("there are {}", known.join(", ")))
}

fn output(name: &str) -> Result<Output, String> {
    [Output::Timeline, Output::Summary, Output::Raw]
        .into_iter()
        .find(|output| output.as_str().eq_ignore_ascii_case(name))
        .ok_or_else(|| "there are timeline, summary, raw".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_formats_name_is_no_place_for_what_is_fetched() {
        let fetch = |path: &str| Cli::try_parse_from(["kubectl-flopwatch", "fetch", "first", "-o", path]);
        assert!(fetch("first").is_ok() && fetch("./json").is_ok());
        let refusal = fetch("json").unwrap_err().to_string();
        assert!(refusal.contains("a path of that name is ./json"), "{refusal}");
    }

    #[test]
    fn an_unknown_category_is_refused_with_the_names_of_those_that_there_are() {
        let asked = |word: &str| Cli::try_parse_from(["kubectl-flopwatch", "profile", "trainer", "--require", word]);
        assert!(asked("cuda_kernel,cpu_op").is_ok());
        let refusal = asked("gpu").unwrap_err().to_string();
        assert!(refusal.contains("there are cuda_kernel, "), "{refusal}");
    }

    #[test]
    fn a_profile_is_asked_for_as_with_kubectl() {
        let words =
            "kubectl-flopwatch -n team profile pod/trainer -c main --duration 30s --trace cuda,nvtx --dry-run -o yaml";
        let cli = Cli::try_parse_from(words.split(' ')).unwrap();
        assert_eq!(cli.connection.namespace.as_deref(), Some("team"));
        let Command::Profile(profile) = cli.command else {
            panic!("not a profile");
        };
        assert_eq!(profile.dry_run, Some(DryRun::Client));
        assert_eq!(profile.trace, [TraceCategory::Cuda, TraceCategory::Nvtx]);
        assert_eq!(profile.format.output, Some(Format::Yaml));
        assert_eq!(profile.duration, Window(30));

        let both = "kubectl-flopwatch profile trainer --dry-run=server --wait";
        assert!(Cli::try_parse_from(both.split(' ')).is_err());
    }
}
