//! The command line of `admission`.

use std::net::SocketAddr;

use clap::Args;

use super::{CommonArgs, LogArgs};
use crate::admission::AdmissionOptions;
use crate::admission::delivery::DeliveryMode;
use crate::admission::entrypoint::EntrypointMode;
use crate::admission::prepare::{Delivery, NcuTools, PrepareOptions};

/// Flags of `admission`.
#[derive(Debug, Args)]
pub struct AdmissionArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// Where reviews are served, over TLS.
    #[arg(long, env = "FLOPWATCH_LISTEN", default_value = "0.0.0.0:8443")]
    listen: SocketAddr,
    /// Secret with the certificate, in the operator's namespace; it is watched.
    #[arg(long, env = "FLOPWATCH_TLS_SECRET", default_value = "flopwatch-admission-tls")]
    tls_secret: String,
    /// Image with the launcher at /usr/local/bin/flopwatch-launcher: the agent's.
    #[arg(long, env = "FLOPWATCH_LAUNCHER_IMAGE")]
    launcher_image: String,
    /// Image with Nsight Systems.
    #[arg(long, env = "FLOPWATCH_TOOLS_IMAGE")]
    tools_image: String,
    /// Folder of its target part in that image. It must keep the name target-linux-x64.
    #[arg(long, env = "FLOPWATCH_TOOLS_PATH", default_value = "/opt/nsys/target-linux-x64", value_parser = tools_path)]
    tools_path: String,
    /// Image with Nsight Compute. Default: none, and no pod is prepared for it.
    #[arg(long, env = "FLOPWATCH_NCU_IMAGE")]
    ncu_image: Option<String>,
    /// Folder of one version in that image, with target and sections.
    #[arg(long, env = "FLOPWATCH_NCU_PATH", default_value = "/opt/ncu", value_parser = ncu_path)]
    ncu_path: String,
    /// Mebibytes that Nsight Compute takes.
    #[arg(long, env = "FLOPWATCH_NCU_SIZE_MEBIBYTES", default_value_t = 400)]
    ncu_size_mebibytes: u32,
    /// How launcher and tools come into pods: `copy` has init containers copy them, `mount` mounts
    /// their images, `auto` mounts where the API server and every node are known to and copies
    /// elsewhere.
    #[arg(long, env = "FLOPWATCH_DELIVERY", value_enum, default_value_t = DeliveryMode::Auto)]
    delivery: DeliveryMode,
    /// Pull policy of the images. Default: the API server's.
    #[arg(long, env = "FLOPWATCH_IMAGE_PULL_POLICY", value_parser = ["Always", "IfNotPresent", "Never"])]
    image_pull_policy: Option<String>,
    /// Version to write down on prepared pods.
    #[arg(long, env = "FLOPWATCH_VERSION", default_value = env!("CARGO_PKG_VERSION"))]
    version: String,
    /// Look up the entrypoint of images whose containers have no command: `pinned` where the node
    /// surely runs what the registry shows, `all` for every image.
    #[arg(long, env = "FLOPWATCH_ENTRYPOINT_LOOKUP", value_enum, default_value_t = EntrypointMode::Off, num_args = 0..=1, require_equals = true, default_missing_value = "pinned")]
    entrypoint_lookup: EntrypointMode,
    /// Registries (host:port) that are asked over plain HTTP, comma-separated.
    #[arg(long, env = "FLOPWATCH_INSECURE_REGISTRIES", value_delimiter = ',')]
    insecure_registries: Vec<String>,
    /// Mebibytes that the tools take; a pod whose ephemeral-storage limit does not hold them and a
    /// capture is not prepared.
    #[arg(long, env = "FLOPWATCH_TOOLS_SIZE_MEBIBYTES", default_value_t = 200)]
    tools_size_mebibytes: u32,
    /// Memory limit in mebibytes below which a pod is not prepared.
    #[arg(long, env = "FLOPWATCH_MIN_MEMORY_MEBIBYTES", default_value_t = 64)]
    min_memory_mebibytes: u32,
    /// sizeLimit of the volume that a capture grows in. A pod that exceeds it is evicted, so
    /// captures are kept below it.
    #[arg(long, env = "FLOPWATCH_RUN_SIZE_LIMIT")]
    run_size_limit: Option<String>,
}

impl AdmissionArgs {
    /// The flags for logging.
    pub fn log(&self) -> &LogArgs {
        &self.common.log
    }

    /// What the flags mean together.
    pub fn options(self) -> AdmissionOptions {
        let Self {
            common,
            listen,
            tls_secret,
            launcher_image,
            tools_image,
            tools_path,
            ncu_image,
            ncu_path,
            ncu_size_mebibytes,
            delivery,
            image_pull_policy,
            version,
            entrypoint_lookup,
            insecure_registries,
            tools_size_mebibytes,
            min_memory_mebibytes,
            run_size_limit,
        } = self;
        let probes = common.probes();
        let namespace = common.namespace;
        AdmissionOptions {
            namespace,
            listen,
            probes,
            tls_secret,
            prepare: PrepareOptions {
                launcher_image,
                tools_image,
                tools_path,
                ncu: ncu_image.map(|image| NcuTools {
                    image,
                    path: ncu_path,
                    bytes: u64::from(ncu_size_mebibytes) << 20,
                }),
                image_pull_policy,
                version,
                tools_bytes: u64::from(tools_size_mebibytes) << 20,
                run_size_limit,
                min_memory_bytes: u64::from(min_memory_mebibytes) << 20,
                entrypoints: entrypoint_lookup,
                delivery: Delivery::Copy,
            },
            delivery,
            insecure_registries,
        }
    }
}

/// Nsight Systems refuses to start from a folder of another name.
fn tools_path(path: &str) -> Result<String, String> {
    let path = path.trim_end_matches('/');
    if path.starts_with('/') && path.ends_with("/target-linux-x64") {
        Ok(path.to_owned())
    } else {
        Err("must be an absolute path that ends in /target-linux-x64".to_owned())
    }
}

/// The last folder's name is its name in the container too.
fn ncu_path(path: &str) -> Result<String, String> {
    let path = path.trim_end_matches('/');
    let is_plain = |name: &str| !matches!(name, "" | "." | "..");
    match path.strip_prefix('/') {
        Some(rest) if rest.split('/').all(is_plain) => Ok(path.to_owned()),
        _ => Err("must be an absolute path below the root".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{Cli, Command};

    const LINE: [&str; 4] = [
        "flopwatch-operator",
        "admission",
        "--launcher-image=a",
        "--tools-image=b",
    ];

    #[test]
    fn the_look_up_is_off_unless_asked_for() {
        let mode = |flags: &[&str]| match Cli::parse_from(LINE.iter().chain(flags)).command {
            Command::Admission(args) => args.options().prepare.entrypoints,
            other => panic!("{other:?}"),
        };
        assert_eq!(mode(&[]), EntrypointMode::Off);
        assert_eq!(mode(&["--entrypoint-lookup"]), EntrypointMode::Pinned);
        assert_eq!(mode(&["--entrypoint-lookup=all"]), EntrypointMode::All);
    }

    #[test]
    fn there_is_no_nsight_compute_unless_an_image_is_named() {
        let ncu = |flags: &[&str]| match Cli::try_parse_from(LINE.iter().chain(flags)).map(|cli| cli.command) {
            Ok(Command::Admission(args)) => Ok(args.options().prepare.ncu),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error),
        };
        assert_eq!(ncu(&[]).unwrap(), None);
        let named = ncu(&["--ncu-image=c", "--ncu-path=/opt/2024.1/"]).unwrap().unwrap();
        assert_eq!((named.image.as_str(), named.path.as_str()), ("c", "/opt/2024.1"));
        for path in ["opt/ncu", "/", "/opt/../ncu"] {
            let option = format!("--ncu-path={path}");
            assert!(ncu(&["--ncu-image=c", &option]).is_err(), "{path}");
        }
    }

    #[test]
    fn a_tools_path_of_another_name_is_refused_at_the_start() {
        let line = LINE.iter().chain(&["--tools-path=/opt/nsys"]);
        assert!(Cli::try_parse_from(line).is_err());
    }
}
