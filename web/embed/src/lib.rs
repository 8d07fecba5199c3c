//! The viewer as `cargo xtask web` built it, inside the programs that serve it.
//!
//! A program that was built without it serves a page that says how to get it, so nobody needs Node
//! to build the programs.

use std::io::Read as _;

use axum::Router;
use axum::body::Body;
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH,
    REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use axum::routing::get;
use flate2::read::GzDecoder;

/// A file of the viewer, deflated.
struct Asset {
    /// Below the viewer's root, with slashes.
    path: &'static str,
    /// With its quotes.
    etag: &'static str,
    gzip: &'static [u8],
}

/// Sorted by path.
static SITE: &[Asset] = include!(concat!(env!("OUT_DIR"), "/site.rs"));

/// The page in the place of a viewer that is not there.
const ABSENT: &str = include_str!("absent.html");

/// Scripts, styles and files of the same server alone; WebAssembly for files of old layouts; no
/// frame of another site.
const POLICY: &str = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; style-src 'self' \
     'unsafe-inline'; img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'self'";

/// Whether this program was built with the viewer.
pub fn is_built() -> bool {
    !SITE.is_empty()
}

/// The page for files that a program serves, and the one that knows a gateway's sessions beside it.
const PAGES: [&str; 2] = ["index.html", "gateway.html"];

/// The routes of the viewer's files, its page at `/`. They need no access check: they are the same
/// for everybody.
pub fn router() -> Router {
    let [page, _] = PAGES;
    routes(SITE, page)
}

/// Likewise, with the page that knows the sessions of the gateway that serves it.
pub fn gateway_router() -> Router {
    let [_, page] = PAGES;
    routes(SITE, page)
}

fn routes(site: &'static [Asset], page: &str) -> Router {
    let index = site.iter().find(|asset| asset.path == page);
    let page = match index {
        Some(asset) => get(move |headers: HeaderMap| async move { answer(asset, &headers) }),
        None => get(|| async { absent() }),
    };
    let files = site.iter().filter(|asset| !PAGES.contains(&asset.path));
    files.fold(Router::new().route("/", page), |router, asset| {
        router.route(
            &format!("/{}", asset.path),
            get(move |headers: HeaderMap| async move { answer(asset, &headers) }),
        )
    })
}

fn answer(asset: &'static Asset, asked: &HeaderMap) -> Response {
    let mut response = Response::new(Body::empty());
    let headers = response.headers_mut();
    // The names of all but the page hold a hash of their content.
    let lasting = asset.path.starts_with("assets/");
    let caching = if lasting {
        "public, max-age=31536000, immutable"
    } else {
        "no-cache"
    };
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(caching));
    headers.insert(ETAG, HeaderValue::from_static(asset.etag));
    headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    guard(headers);
    if asked
        .get_all(IF_NONE_MATCH)
        .iter()
        .any(|tags| tags.to_str().is_ok_and(|tags| names(tags, asset.etag)))
    {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        return response;
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type(asset.path)));
    if takes_gzip(asked) {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        *response.body_mut() = Body::from(asset.gzip);
        return response;
    }
    let mut plain = Vec::new();
    match GzDecoder::new(asset.gzip).read_to_end(&mut plain) {
        Ok(_) => *response.body_mut() = Body::from(plain),
        Err(_) => *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR,
    }
    response
}

fn absent() -> Response {
    let mut response = Response::new(Body::from(ABSENT));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type("index.html")));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    guard(headers);
    response
}

fn guard(headers: &mut HeaderMap) {
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
}

fn names(tags: &str, etag: &str) -> bool {
    tags.split(',').map(str::trim).any(|tag| {
        let tag = tag.strip_prefix("W/").unwrap_or(tag);
        tag == "*" || tag == etag
    })
}

fn takes_gzip(asked: &HeaderMap) -> bool {
    asked
        .get_all(ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|coding| {
            let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
            let refused = weight.trim().strip_prefix("q=").and_then(|weight| weight.parse().ok()) == Some(0.0_f32);
            matches!(name.trim(), "gzip" | "*") && !refused
        })
}

fn media_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, end)| end) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("json") => "application/json",
        Some("wasm") => "application/wasm",
        Some("h5") => "application/x-hdf5",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests;
