//! Which requests the routes of this machine's user answer: those of the viewer that this program
//! serves, and of programs that are no browsers.

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use flopwatch_http::is_for_this_machine;
use flopwatch_http::problem::{Details, respond};

/// Refuses requests of pages of other sites, and requests under another host name than this
/// machine's.
pub(crate) async fn own_pages_only(request: Request, next: Next) -> Response {
    if is_for_this_machine(request.headers()) && is_own(request.headers()) {
        return next.run(request).await;
    }
    let status = StatusCode::FORBIDDEN;
    let detail = "This service answers its own page alone.".to_owned();
    respond(status, &Details::new(status, "Foreign", detail))
}

/// Whether a request comes from a page of this origin, or from a program that is no browser.
fn is_own(headers: &HeaderMap) -> bool {
    headers
        .get_all("sec-fetch-site")
        .iter()
        .all(|site| site == HeaderValue::from_static("same-origin"))
}
