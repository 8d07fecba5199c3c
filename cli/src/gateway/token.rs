//! The token that the gateway is shown: the one from the command line, or otherwise the one that
//! the kubeconfig's user shows to the API server.

use bytes::Bytes;
use futures::future::BoxFuture;
use http::header::AUTHORIZATION;
use http::{HeaderValue, Request, Response};
use http_body_util::Empty;
use kube::client::ConfigExt as _;
use kube::config::AuthInfo;
use tower::{BoxError, Layer as _, ServiceExt as _, service_fn};

use crate::cluster::{Cluster, ClusterError};
use crate::gateway::GatewayError;

/// The value of the header `Authorization`, `Bearer TOKEN`, with the token `given` on the command
/// line or that of the kubeconfig's user. The error is `NoToken` where there is none, and `Cluster`
/// where the kubeconfig's credentials cannot be used.
pub(super) async fn bearer(cluster: &Cluster, given: Option<&str>) -> Result<HeaderValue, GatewayError> {
    let value = match given.map(str::trim) {
        Some("") => {
            return Err(GatewayError::NoToken {
                how: "--token is empty",
            });
        }
        Some(token) => HeaderValue::try_from(format!("Bearer {token}")).ok(),
        None => kubeconfig_bearer(cluster).await?,
    };
    let how = authentication_method(&cluster.config.auth_info);
    let mut value = value.ok_or(GatewayError::NoToken { how })?;
    value.set_sensitive(true);
    Ok(value)
}

/// The value of `Authorization` that the kubeconfig's user shows to the API server, if it is a
/// token. The files and credential programs that the kubeconfig names are read and run.
async fn kubeconfig_bearer(cluster: &Cluster) -> Result<Option<HeaderValue>, GatewayError> {
    let refused = |error: kube::Error| GatewayError::Cluster(ClusterError::Client(Box::new(error)));
    let Some(layer) = cluster.config.auth_layer().map_err(refused)? else {
        return Ok(None);
    };
    // The layer puts the header on requests; what it put on this one is all that is wanted.
    let shown = service_fn(|request: Request<Empty<Bytes>>| {
        let mut answer = Response::new(Empty::<Bytes>::new());
        if let Some(value) = request.headers().get(AUTHORIZATION) {
            answer.headers_mut().insert(AUTHORIZATION, value.clone());
        }
        std::future::ready(Ok::<_, BoxError>(answer))
    });
    // Boxed: the compiler does not see of the layers' futures that they are `Send`.
    let answer: BoxFuture<'_, Result<Response<Empty<Bytes>>, BoxError>> =
        Box::pin(layer.layer(shown).oneshot(Request::new(Empty::new())));
    let answer = answer.await.map_err(|error| refused(kube::Error::Service(error)))?;
    let header = answer.headers().get(AUTHORIZATION).cloned();
    Ok(header.filter(|value| value.as_bytes().starts_with(b"Bearer ")))
}

/// How a user without a token authenticates, as a part of a sentence.
fn authentication_method(user: &AuthInfo) -> &'static str {
    if user.client_certificate.is_some() || user.client_certificate_data.is_some() {
        "it authenticates with a certificate"
    } else if user.username.is_some() {
        "it authenticates with a password"
    } else if user.exec.is_some() {
        "its credential program gives none"
    } else {
        "it has no credentials at all"
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::arguments::ConnectionArguments;

    fn cluster(user: &Value) -> Cluster {
        drop(rustls::crypto::ring::default_provider().install_default());
        let mut config = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
        config.auth_info = serde_json::from_value(user.clone()).unwrap();
        Cluster::of(config, &ConnectionArguments::default()).unwrap()
    }

    #[tokio::test]
    async fn the_kubeconfigs_token_is_shown_unless_another_is_given() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        std::fs::write(&file, "of-file").unwrap();
        let rows = [
            (json!({"token": "own"}), None, "Bearer own"),
            (json!({"token": "own"}), Some("given\n"), "Bearer given"),
            (json!({"tokenFile": file}), None, "Bearer of-file"),
            (json!({}), Some("given"), "Bearer given"),
        ];
        for (user, given, expected) in rows {
            let shown = bearer(&cluster(&user), given).await.unwrap();
            assert_eq!(shown, expected, "{user}");
            assert!(shown.is_sensitive());
        }
    }

    #[tokio::test]
    async fn a_user_without_a_token_is_told_how_to_get_one() {
        let rows = [
            (json!({}), None, "no credentials at all"),
            (json!({"username": "ada", "password": "secret"}), None, "a password"),
            (json!({"token": "own"}), Some(" "), "--token is empty"),
        ];
        for (user, given, expected) in rows {
            let message = bearer(&cluster(&user), given).await.unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
            assert!(message.contains("kubectl create token"), "{message}");
        }
        let certificate: AuthInfo = serde_json::from_value(json!({"client-certificate": "c.pem"})).unwrap();
        assert_eq!(
            authentication_method(&certificate),
            "it authenticates with a certificate"
        );
    }
}
