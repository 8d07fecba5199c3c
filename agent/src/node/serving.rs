//! The artifacts and the series of a node: where they are kept, what makes derived artifacts, and
//! who they are served to.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use flopwatch_api::{METRICS_AUDIENCE, agent_audience};
use flopwatch_artifacts::object_store::Bucket;
use flopwatch_artifacts::{Access, ArtifactMetrics, ArtifactService, ConversionLimits, Store, StoreOptions};
use flopwatch_http::{Reviewer, ReviewerOptions, Server, ServerLimits};
use flopwatch_pipeline::derived::DerivedArtifacts;
use flopwatch_pipeline::disk;
use flopwatch_pipeline::steps::{self, ChildRunner};
use kube::Client;
use prometheus::Registry;

use super::error::io_error;
use super::{Error, Options};
use crate::metrics::Metrics;
use crate::observability;

/// Opens the store of this node's artifacts.
pub(super) async fn open_store(options: &Options, metrics: ArtifactMetrics) -> Result<Arc<Store>, Error> {
    let folder = options.data_dir.join("artifacts");
    let volume = disk::volume(&options.data_dir).map_err(io_error("the size of the data folder's disk is unknown"))?;
    let store_options = StoreOptions {
        free_bytes_floor: options.floor().of(volume.bytes),
        derived_bytes: options.max_derived_bytes,
        derived_age: Duration::from_hours(options.derived_hours.into()),
    };
    Ok(Arc::new(Store::open(&folder, store_options, metrics).await?))
}

/// What makes derived artifacts: of timelines by children with the bounds of a transform, whose
/// files are no larger than derived artifacts may be; of raw captures with the `steps` of captures.
pub(super) async fn open_derived(
    options: &Options,
    children: steps::Limits,
    raw: ChildRunner,
) -> Result<DerivedArtifacts, Error> {
    let own = std::env::current_exe().map_err(io_error("the path of this program cannot be found"))?;
    let limits = steps::Limits {
        file_bytes: children.file_bytes.min(options.max_derived_bytes),
        ..children
    };
    let folder = options.data_dir.join("conversions");
    let failed = format!("cannot make {}", folder.display());
    DerivedArtifacts::open(ChildRunner::new(own, None, limits), raw, folder)
        .await
        .map_err(io_error(failed))
}

/// The series, for those who may read them.
pub(super) fn series(registry: Registry, client: &Client, metrics: &Metrics) -> Router {
    let options = ReviewerOptions::for_metrics(METRICS_AUDIENCE);
    let reviewer = Reviewer::new(client.clone(), options, metrics.scrape_reviews());
    observability::series(registry, Arc::new(reviewer))
}

/// Listens for those who fetch artifacts, and for those who read metrics.
pub(super) async fn bind(
    options: &Options,
    client: &Client,
    store: &Arc<Store>,
    derived: DerivedArtifacts,
    bucket: Option<Bucket>,
    metrics: ArtifactMetrics,
    series: Router,
) -> Result<Server, Error> {
    let reviews = ReviewerOptions {
        service_audience: Some(agent_audience(&options.node_name)),
        ..ReviewerOptions::default()
    };
    let reviewer = Reviewer::new(client.clone(), reviews, metrics.reviews());
    let access = Access::Kubernetes(Box::new(reviewer));
    let limits = ConversionLimits::default();
    let service = ArtifactService::converting(Arc::clone(store), access, metrics, Arc::new(derived), limits, bucket);
    let server = Server::bind_tls(&service, options.listen, &options.tls_dir, ServerLimits::default()).await?;
    Ok(server.with_second_address(options.listen_metrics, series)?.0)
}
