use super::*;
use axum::body::to_bytes;
use axum::http::Request;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write as _;
use tower::ServiceExt as _;

fn deflated(text: &str) -> &'static [u8] {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap().leak()
}

fn site() -> &'static [Asset] {
    let assets = [
        ("assets/a-1.js", "\"aa\"", "let a"),
        ("gateway.html", "\"cc\"", "<title>of a gateway"),
        ("index.html", "\"bb\"", "<title>"),
    ];
    let assets = assets.map(|(path, etag, text)| Asset {
        path,
        etag,
        gzip: deflated(text),
    });
    Vec::from(assets).leak()
}

type Answer = (StatusCode, HeaderMap, Vec<u8>);

async fn get(site: &'static [Asset], path: &str, headers: &[(&str, &str)]) -> Answer {
    get_of(routes(site, "index.html"), path, headers).await
}

async fn get_of(router: Router, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request = Request::get(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Body::empty()).unwrap();
    let response = router.oneshot(request).await.unwrap();
    let (status, headers) = (response.status(), response.headers().clone());
    let body = to_bytes(response.into_body(), 16 << 20).await.unwrap();
    (status, headers, body.to_vec())
}

#[tokio::test]
async fn the_page_is_at_the_root_and_asked_for_again_each_time() {
    let (status, headers, body) = get(site(), "/", &[]).await;
    assert_eq!((status, body.as_slice()), (StatusCode::OK, b"<title>".as_slice()));
    assert_eq!(headers[CONTENT_TYPE], "text/html; charset=utf-8");
    assert_eq!(headers[CACHE_CONTROL], "no-cache");
    assert!(
        headers[CONTENT_SECURITY_POLICY]
            .to_str()
            .unwrap()
            .starts_with("default-src 'none'")
    );
    let (status, _, body) = get(site(), "/", &[("if-none-match", "\"xx\", W/\"bb\"")]).await;
    assert_eq!((status, body.len()), (StatusCode::NOT_MODIFIED, 0));
}

#[tokio::test]
async fn a_gateway_has_a_page_of_its_own_at_the_root() {
    let (status, headers, body) = get_of(routes(site(), "gateway.html"), "/", &[]).await;
    assert_eq!(
        (status, body.as_slice()),
        (StatusCode::OK, b"<title>of a gateway".as_slice())
    );
    assert!(headers.contains_key(CONTENT_SECURITY_POLICY));
    for page in PAGES {
        let (status, ..) = get(site(), &format!("/{page}"), &[]).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{page} is at / alone");
    }
}

#[tokio::test]
async fn scripts_are_sent_deflated_to_those_who_take_it_and_kept_for_good() {
    for (accept, encoded) in [
        ("gzip, br", true),
        ("br;q=1.0, gzip;q=0.5", true),
        ("*", true),
        ("gzip;q=0", false),
        ("br", false),
    ] {
        let (status, headers, body) = get(site(), "/assets/a-1.js", &[("accept-encoding", accept)]).await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(headers.contains_key(CONTENT_ENCODING), encoded, "{accept}");
        assert_eq!(body == b"let a", !encoded, "{accept}");
        assert!(headers[CACHE_CONTROL].to_str().unwrap().contains("immutable"));
        assert_eq!(headers[CONTENT_TYPE], "text/javascript; charset=utf-8");
    }
}

#[tokio::test]
async fn without_a_build_the_page_says_how_to_get_one() {
    let (status, _, body) = get(&[], "/", &[]).await;
    assert_eq!(status, StatusCode::OK);
    assert!(String::from_utf8(body).unwrap().contains("cargo xtask web"));
    assert_eq!(get(&[], "/index.html", &[]).await.0, StatusCode::NOT_FOUND);
}

/// What wants the viewer to be built.
mod crate_tests {
    use super::*;

    #[tokio::test]
    async fn what_the_built_page_names_is_inside_too() {
        if !is_built() {
            println!("skipped: the viewer was not built before this program; run `cargo xtask web`");
            return;
        }
        for router in [router(), gateway_router()] {
            let (_, _, page) = get_of(router.clone(), "/", &[]).await;
            let page = String::from_utf8(page).unwrap();
            let named: Vec<&str> = page.split('"').filter_map(|word| word.strip_prefix("./")).collect();
            assert!(named.len() >= 2, "{page}");
            for path in named {
                let (status, _, body) = get_of(router.clone(), &format!("/{path}"), &[]).await;
                assert!(status == StatusCode::OK && !body.is_empty(), "{path}");
            }
        }
        assert!(SITE.iter().any(|asset| asset.path.contains("worker")));
    }
}
