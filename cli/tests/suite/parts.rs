//! Parts of a file that the library reads for other programs: those that are asked for, and of one
//! content alone.
#![allow(clippy::single_range_in_vec_init, reason = "lists of parts, some of one")]

use flopwatch_api::capture::Capture;
use flopwatch_cli::arguments::{ConnectionArguments, GatewayArguments};
use flopwatch_cli::cluster::Cluster as Reached;
use flopwatch_cli::fetch::{FetchError, FileAddress, Sparse};
use flopwatch_cli::gateway::Gateway;
use serde_json::{Value, json};

use crate::cluster::{Cluster, of_ada};
use crate::fetching::{capture, content, digest, session};
use crate::gateway::{FakeGateway, Step};

fn file_address(sha256: &str, name: &str) -> FileAddress {
    let status = json!({"artifacts": [{
        "name": "timeline.h5", "type": "Timeline", "bytes": 1, "sha256": sha256, "mediaType": "application/x-hdf5"
    }]});
    let of = |object: Value| serde_json::from_value::<Capture>(object).unwrap();
    let captures = [of(capture("first-1", &status))];
    let session = serde_json::from_value(session("first", "0badcafe")).unwrap();
    FileAddress::of(&session, &captures, None, name).unwrap()
}

async fn reached(gateway: &FakeGateway) -> Gateway {
    let cluster = Cluster::start().await;
    let connection = ConnectionArguments {
        kubeconfig: Some(cluster.kubeconfig(&of_ada())),
        ..ConnectionArguments::default()
    };
    let arguments = GatewayArguments {
        gateway: Some(gateway.url()),
        gateway_ca: Some(gateway.authority()),
        ..GatewayArguments::default()
    };
    Gateway::find(&Reached::connect(&connection).await.unwrap(), &arguments)
        .await
        .unwrap()
}

fn held(sparse: &Sparse, from: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    sparse.read_at(&mut bytes, from).unwrap();
    bytes
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_come_once_and_breaks_are_mended() {
    let (fake, content) = (FakeGateway::start(content()).await, content());
    let gateway = reached(&fake).await;
    let sparse = Sparse::find(&gateway, file_address(&digest(&content), "timeline.h5"), 1000)
        .await
        .unwrap();
    assert_eq!((sparse.size(), sparse.downloaded_bytes()), (800_000, 1000));
    assert_eq!(std::fs::metadata(sparse.path()).unwrap().len(), 800_000);
    fake.then([Step::BreakAfter(10), Step::Problem(503, "Busy")]);
    sparse.download(&gateway, &[500..2000, 700_000..700_100]).await.unwrap();
    assert_eq!(held(&sparse, 0, 2000), content[..2000]);
    assert_eq!(held(&sparse, 700_000, 100), content[700_000..700_100]);
    assert_eq!(sparse.downloaded_bytes(), 2100, "what is here does not come again");
    let asked = fake.heads().len();
    sparse.download(&gateway, &[0..2000]).await.unwrap();
    assert_eq!(fake.heads().len(), asked);
    let path = sparse.path().to_owned();
    drop(sparse);
    assert!(!path.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_another_content_is_refused() {
    let (fake, content) = (FakeGateway::start(content()).await, content());
    let gateway = reached(&fake).await;
    let sparse = Sparse::find(&gateway, file_address(&digest(&content), "timeline.h5"), 1000)
        .await
        .unwrap();
    // The answer of a gateway whose file is another one than that of the tag.
    fake.then([Step::Whole]);
    let refused = sparse.download(&gateway, &[5000..6000]).await.unwrap_err();
    assert!(matches!(refused, FetchError::NoParts(_)), "{refused}");
    fake.change(vec![7; 800_000]);
    let refused = sparse.download(&gateway, &[5000..6000]).await.unwrap_err();
    assert!(matches!(refused, FetchError::Changed(_)), "{refused}");
    assert_eq!(sparse.downloaded_bytes(), 1000, "nothing of it is kept");
    let refused = Sparse::find(&gateway, file_address(&digest(&content), "timeline.h5"), 10)
        .await
        .unwrap_err();
    assert!(matches!(refused, FetchError::Corrupt { .. }), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_made_on_demand_is_waited_for() {
    let fake = FakeGateway::start(content()).await;
    let gateway = reached(&fake).await;
    fake.then([Step::Problem(503, "Converting")]);
    let made = Sparse::find(&gateway, file_address("", "timeline.parquet"), 10)
        .await
        .unwrap();
    assert_eq!(made.size(), 800_000);
    fake.then([Step::Problem(403, "Forbidden")]);
    let refused = made.download(&gateway, &[20..30]).await.unwrap_err();
    assert!(matches!(refused, FetchError::Gateway(_)), "{refused}");
}
