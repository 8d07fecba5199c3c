//! Reads pages that this process serves itself: it is the container.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::routing::get;
use tokio::net::TcpListener;

use super::*;

/// Serves a page on loopback, and reads `steps_total` of it as a container whose one process is
/// this one.
async fn client(path: &str, page: impl Fn() -> String + Clone + Send + Sync + 'static) -> Client {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let app = Router::new().route("/metrics", get(move || async move { page() }));
    tokio::spawn(async move { axum::serve(listener, app).await });
    Client {
        procfs: own(),
        container_id: ID.to_owned(),
        signal: PrometheusSignal {
            port: port.into(),
            path: path.to_owned(),
            counter: "steps_total".to_owned(),
            labels: BTreeMap::new(),
            baseline_seconds: 3,
        },
        connection: None,
    }
}

const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// A procfs in which this process alone is in that container.
fn own() -> Procfs {
    let folder = tempfile::tempdir().unwrap().keep();
    let pid = std::process::id().to_string();
    let of = folder.join(&pid);
    std::fs::create_dir(&of).unwrap();
    std::fs::write(
        of.join("cgroup"),
        format!("0::/kubepods/pod0a1b2c3d-1111-2222-3333-444455556666/{ID}\n"),
    )
    .unwrap();
    for name in ["stat", "fd", "net", "ns", "status"] {
        std::os::unix::fs::symlink(format!("/proc/{pid}/{name}"), of.join(name)).unwrap();
    }
    Procfs::new(&folder)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_counter_is_read_again_and_again_over_one_connection() {
    let steps = Arc::new(AtomicU64::new(7));
    let shown = Arc::clone(&steps);
    let mut client = client("/metrics", move || {
        format!("steps_total {}\n", shown.fetch_add(5, Ordering::Relaxed))
    })
    .await;
    let first = client.read().await.unwrap();
    let second = client.read().await.unwrap();
    assert_eq!((first.count, second.count), (7, 12));
    assert!(first.at_ns < second.at_ns);
    let scraper = Scraper::start(client.procfs.clone(), ID.to_owned(), client.signal.clone());
    let deadline = Instant::now() + Duration::from_secs(20);
    while scraper.since(0).len() < 3 {
        assert!(Instant::now() < deadline, "{:?}", scraper.failure());
        sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(scraper.failure(), None);
    assert_eq!(scraper.since(u64::MAX), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_says_why() {
    let mut wrong = client("/other", || "steps_total 1\n".to_owned()).await;
    assert!(wrong.read().await.unwrap_err().to_string().contains("404"));
    let mut absent = client("/metrics", || "other_total 1\n".to_owned()).await;
    assert!(matches!(absent.read().await, Err(ScrapeError::Exposition(_))));
    let mut long = client("/metrics", || "# long\n".repeat(MAX_ANSWER_BYTES / 7 + 1)).await;
    assert!(long.read().await.unwrap_err().to_string().contains("more than"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_at_which_another_process_listens_is_not_read() {
    let mut client = client("/metrics", || "steps_total 1\n".to_owned()).await;
    client.container_id = ID.replace('0', "f");
    assert!(matches!(client.read().await, Err(ScrapeError::NobodyListens(_))));
    // A port of nobody.
    client.container_id = ID.to_owned();
    client.signal.port = 1;
    assert!(matches!(client.read().await, Err(ScrapeError::NobodyListens(1))));
}
