//! The viewer's files, which lie in the module.

use axum::body::{Body, to_bytes};
use axum::http::Request;
use axum::http::header::ACCEPT_ENCODING;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use tokio::runtime::Builder;
use tower::ServiceExt as _;

/// Most bytes of a file of the viewer.
const MAX_BYTES: usize = 64 << 20;

/// What the viewer answers a request with: the status, the headers and the content.
type Answer = (u16, Vec<(String, String)>, Vec<u8>);

/// The viewer's answer to a request of the path `path`, such as `/` or `/assets/main.js`, by
/// whoever accepts the content encodings `encodings`.
#[pyfunction]
pub(crate) fn viewer(py: Python<'_>, path: &str, encodings: &str) -> PyResult<Answer> {
    let failed = |error: String| PyOSError::new_err(error);
    let request = Request::get(path)
        .header(ACCEPT_ENCODING, encodings)
        .body(Body::empty())
        .map_err(|error| failed(error.to_string()))?;
    py.detach(|| {
        let runtime = Builder::new_current_thread().build();
        let runtime = runtime.map_err(|error| failed(error.to_string()))?;
        runtime.block_on(async {
            // What cannot fail has no words for it.
            let Ok(response) = flopwatch_viewer::router().oneshot(request).await;
            let (head, body) = response.into_parts();
            let content = to_bytes(body, MAX_BYTES).await;
            let content = content.map_err(|error| failed(error.to_string()))?;
            let headers = head.headers.iter().filter_map(|(name, value)| {
                let value = value.to_str().ok()?;
                Some((name.as_str().to_owned(), value.to_owned()))
            });
            Ok((head.status.as_u16(), headers.collect(), content.to_vec()))
        })
    })
}
