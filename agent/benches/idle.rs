//! What an agent costs that has nothing to do: `cargo xtask bench idle`.
//!
//! Arguments: the agent's program, seconds, containers, GPUs. Runs the agent as a DaemonSet does,
//! beside an API server in memory on a socket, whose node has so many containers that nobody
//! profiles and GPUs that nobody uses. Prints a line of JSON: percent of a core, memory, and how
//! often its threads woke up.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    dead_code,
    reason = "a measurement fails by panicking and prints; the tests use more of what they share with it"
)]

#[path = "../tests/alone/metrics_ring/cgroups.rs"]
mod cgroups;
#[path = "../tests/alone/metrics_ring/machine.rs"]
mod machine;

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use flopwatch_test_harness::{ApiServer, Call, Identity, Verb};
use k8s_openapi::ByteString;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, SysconfVar, sysconf};
use rcgen::{CertificateParams, CertificateSigningRequestParams, DnType, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};
use tempfile::TempDir;

use cgroups::RealCgroups;
use machine::{STATE, id, state, wait};

/// The rig's NVML library.
const LIBRARY: &str = "FLOPWATCH_FAKE_NVML_LIBRARY";
/// Longest time until it is ready.
const READY_TIMEOUT: Duration = Duration::from_mins(1);
/// Time until what it did at its start is over: threads of finished work wait for more for ten
/// seconds.
const SETTLING_DURATION: Duration = Duration::from_secs(15);
const SIGNING_REQUESTS: &str = "certificatesigningrequests";

/// An agent that runs.
struct Agent {
    child: Child,
    _folder: TempDir,
}

impl Drop for Agent {
    fn drop(&mut self) {
        kill(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGTERM).ok();
        self.child.wait().ok();
    }
}

/// The API server of a node with so many containers, which signs what agents ask it to.
async fn api_server(containers: u32) -> (ApiServer, SocketAddr) {
    let server = ApiServer::new();
    for number in 0..containers {
        server.put(&json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": format!("p{number}"), "namespace": "team", "uid": format!("uid-{number}")},
            "spec": {"nodeName": "n1", "containers": [{"name": "main"}]},
            "status": {"phase": "Running", "containerStatuses": [{
                "name": "main", "image": "", "imageID": "", "ready": true, "restartCount": 0,
                "containerID": format!("containerd://{}", id(number)), "state": {"running": {}}
            }]}
        }));
    }
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    authority.distinguished_name.push(DnType::CommonName, "authority");
    let issuer = Issuer::new(authority, KeyPair::generate().unwrap());
    server.after(move |server: &ApiServer, call: &Call| {
        if call.verb != Verb::Create || !call.path.ends_with(SIGNING_REQUESTS) {
            return;
        }
        for mut asked in server.all(SIGNING_REQUESTS) {
            let ByteString(pem) = serde_json::from_value(asked["spec"]["request"].clone()).unwrap();
            let request = CertificateSigningRequestParams::from_pem(&String::from_utf8(pem).unwrap()).unwrap();
            let signed = request.signed_by(&issuer).unwrap().pem();
            asked["status"]["certificate"] = json!(ByteString(signed.into_bytes()));
            server.put(&asked);
        }
    });
    let address = server.listen().await;
    (server, address)
}

/// A port that is free now.
fn free_port() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap()
}

impl Agent {
    /// Starts it with so many GPUs, and waits until it is ready.
    fn start(program: &Path, server: &ApiServer, address: SocketAddr, gpus: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let token = server.issue_token(Identity::new("agent").in_groups(&["system:masters"]));
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": format!("http://{address}")}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "users": [{"name": "u", "user": {"token": token}}],
        });
        std::fs::write(at("config"), config.to_string()).unwrap();
        std::fs::create_dir(at("tls")).unwrap();
        let probes = free_port();
        let mut command = Command::new(program);
        command.args([
            "run",
            "--node-name=n1",
            "--advertise-address=127.0.0.1",
            "--log-level=warn",
        ]);
        command.args(["--listen=127.0.0.1:0", "--listen-metrics=127.0.0.1:0"]);
        command.arg(format!("--listen-health={probes}"));
        for (option, name) in [("data-dir", "data"), ("tls-dir", "tls"), ("tools-dir", "no-tools")] {
            command.arg(format!("--{option}={}", at(name).display()));
        }
        let library = match gpus {
            0 => at("no-nvml"),
            _ => PathBuf::from(std::env::var_os(LIBRARY).unwrap()),
        };
        command.arg("--nvml-library").arg(library);
        command
            .env("KUBECONFIG", at("config"))
            .env(STATE, unused(folder.path(), gpus));
        let agent = Self {
            child: command.spawn().unwrap(),
            _folder: folder,
        };
        let end = Instant::now() + READY_TIMEOUT;
        while !is_ready(probes) {
            assert!(Instant::now() < end, "the agent does not get ready");
            wait(Duration::from_millis(200));
        }
        agent
    }

    /// A file of its folder in procfs.
    fn proc(&self, file: &str) -> String {
        std::fs::read_to_string(format!("/proc/{}/{file}", self.child.id())).unwrap_or_default()
    }

    /// Processor time of all its threads so far, those that ended included.
    fn spent(&self) -> Duration {
        let stat = self.proc("stat");
        // What stands behind the name, which may hold blanks: the state is the third field, the
        // times are the 14th and 15th.
        let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
        let ticks: u64 = fields[11..13].iter().map(|ticks| ticks.parse::<u64>().unwrap()).sum();
        let per_second = u64::try_from(sysconf(SysconfVar::CLK_TCK).unwrap().unwrap()).unwrap();
        Duration::from_millis(ticks * 1000 / per_second)
    }

    /// A figure of its status in kB, in bytes.
    fn bytes(&self, name: &str) -> u64 {
        let status = self.proc("status");
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        1024 * line.unwrap().trim().trim_end_matches(" kB").parse::<u64>().unwrap()
    }

    /// Of each thread by its name: processor time and waits so far.
    fn threads(&self) -> BTreeMap<String, (Duration, u64)> {
        let mut found: BTreeMap<String, (Duration, u64)> = BTreeMap::new();
        for task in std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap() {
            let of = task.unwrap().path();
            let read = |file: &str| std::fs::read_to_string(of.join(file)).unwrap_or_default();
            let schedstat = read("schedstat");
            let nanoseconds = schedstat.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0);
            let status = read("status");
            let waits = status.lines().find_map(|line| {
                line.strip_prefix("voluntary_ctxt_switches:")?
                    .trim()
                    .parse::<u64>()
                    .ok()
            });
            let sum = found.entry(read("comm").trim().to_owned()).or_default();
            sum.0 += Duration::from_nanos(nanoseconds);
            sum.1 += waits.unwrap_or(0);
        }
        found
    }
}

/// The state of GPUs that no process is on.
fn unused(folder: &Path, gpus: u32) -> PathBuf {
    let file = state(folder, gpus);
    let mut told: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    for device in told["devices"].as_array_mut().unwrap() {
        device["processes"] = json!([]);
    }
    std::fs::write(&file, told.to_string()).unwrap();
    file
}

fn is_ready(probes: SocketAddr) -> bool {
    let ask = || {
        let mut stream = TcpStream::connect(probes)?;
        stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: agent\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        std::io::Result::Ok(answer.starts_with("HTTP/1.1 200"))
    };
    ask().unwrap_or(false)
}

fn main() {
    // Cargo adds an argument of its own.
    let given: Vec<String> = std::env::args().skip(1).filter(|given| given != "--bench").collect();
    let [program, numbers @ ..] = given.as_slice() else {
        panic!("arguments: PROGRAM SECONDS CONTAINERS GPUS");
    };
    let numbers: Vec<u32> = numbers.iter().map(|number| number.parse().unwrap()).collect();
    let [seconds, containers, gpus] = numbers[..] else {
        panic!("arguments: PROGRAM SECONDS CONTAINERS GPUS");
    };
    let _cgroups = RealCgroups::make(containers).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (server, address) = runtime.block_on(api_server(containers));
    let agent = Agent::start(Path::new(program), &server, address, gpus);
    wait(SETTLING_DURATION);
    let calls = server.calls().len();
    let (begin, spent, threads) = (Instant::now(), agent.spent(), agent.threads());
    wait(Duration::from_secs(seconds.into()));
    let time = begin.elapsed().as_secs_f64();
    let (after, now) = (agent.spent(), agent.threads());
    let of_threads: BTreeMap<&str, Value> = now
        .iter()
        .map(|(name, (spent, waits))| {
            let before = threads.get(name).copied().unwrap_or_default();
            let percent = 100.0 * spent.saturating_sub(before.0).as_secs_f64() / time;
            let waits = f64::from(u32::try_from(waits.saturating_sub(before.1)).unwrap()) / time;
            (name.as_str(), json!({"percent": percent, "wakes_per_second": waits}))
        })
        .collect();
    let wakes: f64 = of_threads
        .values()
        .filter_map(|of| of["wakes_per_second"].as_f64())
        .sum();
    let line = json!({
        "percent": 100.0 * after.saturating_sub(spent).as_secs_f64() / time, "wakes_per_second": wakes,
        "resident_bytes": agent.bytes("VmRSS"), "anonymous_bytes": agent.bytes("RssAnon"), "peak_bytes": agent.bytes("VmHWM"),
        "calls": server.calls().len() - calls, "threads": of_threads,
    });
    println!("{line}");
}
