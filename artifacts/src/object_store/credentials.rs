//! Credentials of the object store, out of the environment alone: never out of URLs, flags or
//! custom resources.

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};

/// Variables that are read, as AWS's own tools name them.
const VARIABLES: [(&str, AmazonS3ConfigKey); 9] = [
    ("AWS_ACCESS_KEY_ID", AmazonS3ConfigKey::AccessKeyId),
    ("AWS_SECRET_ACCESS_KEY", AmazonS3ConfigKey::SecretAccessKey),
    ("AWS_SESSION_TOKEN", AmazonS3ConfigKey::Token),
    ("AWS_WEB_IDENTITY_TOKEN_FILE", AmazonS3ConfigKey::WebIdentityTokenFile),
    ("AWS_ROLE_ARN", AmazonS3ConfigKey::RoleArn),
    ("AWS_ROLE_SESSION_NAME", AmazonS3ConfigKey::RoleSessionName),
    (
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        AmazonS3ConfigKey::ContainerCredentialsRelativeUri,
    ),
    (
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        AmazonS3ConfigKey::ContainerCredentialsFullUri,
    ),
    (
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
        AmazonS3ConfigKey::ContainerAuthorizationTokenFile,
    ),
];

/// Hands on what `variable` knows.
pub(crate) fn from_environment(
    mut builder: AmazonS3Builder,
    variable: impl Fn(&str) -> Option<String>,
) -> AmazonS3Builder {
    for (name, key) in VARIABLES {
        // A key of a Secret often ends with the newline of the editor that wrote it.
        let value = variable(name).map(|value| value.trim().to_owned());
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            builder = builder.with_config(key, value);
        }
    }
    builder
}
