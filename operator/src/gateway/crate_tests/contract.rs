//! The gateway held against its own document by Schemathesis: every operation, with data that is as
//! described and data that is not.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

use super::cluster::Controller;
use super::rig::Rig;

/// Longest run; a quiet machine takes a fraction of it.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(5);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_gateway_answers_as_its_document_says() {
    let Some(python) = super::clients::python() else { return };
    let rig = Rig::new().await;
    // Sessions end at once: nobody listens to one for long.
    *rig.cluster.controller.lock().unwrap() = Controller::Ends;
    rig.session("team", "another", "00000bad", 1, "False");
    let scratch = tempfile::tempdir().unwrap();
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/contract");
    let run = Command::new(python)
        .args(["-m", "schemathesis.cli", "--config-file"])
        .arg(files.join("schemathesis.toml"))
        .args(["run", "--no-color"])
        .arg(format!("http://{}/api/openapi.json", rig.address))
        .env("SCHEMATHESIS_HOOKS", "hooks")
        .env("PYTHONPATH", &files)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .current_dir(scratch.path())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let ran = tokio::time::timeout(ANSWER_TIMEOUT, run)
        .await
        .expect("an end within the deadline")
        .unwrap();
    let message = String::from_utf8_lossy(&ran.stdout);
    assert!(
        ran.status.success(),
        "{message}{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    println!("{message}");
}
