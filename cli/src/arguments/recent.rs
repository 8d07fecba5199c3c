//! What a pod's flight recorder is asked for: a session as any other, with one way to ask.

use clap::Args;
use flopwatch_api::profiler::ProfilerType;
use flopwatch_api::session::MAX_DURATION_SECONDS;

use super::{FormatArguments, GatewayArguments, PodName, ProfileArguments, Span, Window};

/// What to take of the past.
#[derive(Debug, Args)]
pub struct RecentArguments {
    /// The pod: NAME or pod/NAME
    #[arg(value_name = "POD")]
    pub pod: PodName,
    /// How far back
    #[arg(long, default_value_t = 30, value_name = "SECONDS", value_parser = clap::value_parser!(i32).range(1..=i64::from(MAX_DURATION_SECONDS)))]
    pub seconds: i32,
    /// Container; may be repeated. Default: those that ask for a GPU, else those that were prepared
    #[arg(short, long = "container", value_name = "CONTAINER")]
    pub containers: Vec<String>,
    /// Name of the session; default: made of the pod's
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Longest wait, such as 10m; 0: for ever
    #[arg(long, default_value = "5m", value_name = "TIME")]
    pub timeout: Span,
    /// Serve the timeline with the viewer on this machine
    #[arg(long)]
    pub open: bool,
    /// How the session is printed.
    #[command(flatten)]
    pub format: FormatArguments,
    /// How the timeline is fetched.
    #[command(flatten)]
    pub gateway: GatewayArguments,
}

impl From<RecentArguments> for ProfileArguments {
    fn from(recent: RecentArguments) -> Self {
        Self {
            pod: Some(recent.pod),
            containers: recent.containers,
            duration: Window(recent.seconds),
            profiler: ProfilerType::Recorder,
            name: recent.name,
            wait: true,
            timeout: recent.timeout,
            open: recent.open,
            format: recent.format,
            gateway: recent.gateway,
            ..Self::default()
        }
    }
}
