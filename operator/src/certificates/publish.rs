//! Reads and writes the certificates: the Secrets, the CA bundle in the webhook configuration, and
//! the ConfigMap with the authority that clients of the gateway trust.

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, PatchOperation, TestOperation};
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Client;
use kube::api::{Api, Patch, PatchParams};

use flopwatch_api::OPERATOR_FIELD_MANAGER;

use crate::certificates::CertificateOptions;
use crate::certificates::material::{Authority, BUNDLE, Leaf, Material, SecretData};
use crate::deadline::{CallError, bounded};

/// Reads the authority and the certificates from their Secrets; one that is missing or unreadable
/// is None. The error is that of the first call that failed.
pub(super) async fn read(client: &Client, options: &CertificateOptions) -> Result<Material, CallError> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), &options.namespace);
    let data = async |name: &str| -> Result<SecretData, CallError> {
        let secret = bounded("reading a certificate secret", secrets.get_opt(name)).await?;
        let data = secret.and_then(|secret| secret.data).unwrap_or_default();
        Ok(data.into_iter().map(|(key, ByteString(value))| (key, value)).collect())
    };
    Ok(Material {
        authority: Authority::of_secret(&data(&options.authority_secret).await?),
        webhook: Leaf::of_secret(&data(&options.webhook_secret).await?),
        controller: Leaf::of_secret(&data(&options.controller_secret).await?),
        gateway: match options.names.gateway.as_slice() {
            [] => None,
            _ => Leaf::of_secret(&data(&options.gateway_secret).await?),
        },
    })
}

/// Reads the authority alone; None where its Secret is missing or unreadable.
pub(super) async fn read_authority(
    client: &Client,
    options: &CertificateOptions,
) -> Result<Option<Authority>, CallError> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), &options.namespace);
    let secret = bounded("reading the authority", secrets.get_opt(&options.authority_secret)).await?;
    let data = secret.and_then(|secret| secret.data).unwrap_or_default();
    let data: SecretData = data.into_iter().map(|(key, ByteString(value))| (key, value)).collect();
    Ok(Authority::of_secret(&data))
}

/// Writes the parts of `desired` that differ from `current`: the authority first, then the bundles
/// by which clients trust it, then the certificates that it signed.
pub(super) async fn write(
    client: &Client,
    options: &CertificateOptions,
    current: &Material,
    desired: &Material,
) -> Result<(), CallError> {
    if let Some(authority) = desired
        .authority
        .as_ref()
        .filter(|_| desired.authority != current.authority)
    {
        write_secret(client, options, &options.authority_secret, authority.to_secret()).await?;
    }
    if let Some(webhook) = &desired.webhook {
        trust_authority(client, options, &webhook.bundle).await?;
    }
    if let Some(gateway) = &desired.gateway {
        publish_authority(client, options, &gateway.bundle).await?;
    }
    for (name, current, desired) in [
        (&options.webhook_secret, &current.webhook, &desired.webhook),
        (&options.controller_secret, &current.controller, &desired.controller),
        (&options.gateway_secret, &current.gateway, &desired.gateway),
    ] {
        if let Some(leaf) = desired.as_ref().filter(|_| desired != current) {
            write_secret(client, options, name, leaf.to_secret()).await?;
        }
    }
    Ok(())
}

async fn write_secret(
    client: &Client,
    options: &CertificateOptions,
    name: &str,
    data: SecretData,
) -> Result<(), CallError> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), &options.namespace);
    let data: std::collections::BTreeMap<String, ByteString> =
        data.into_iter().map(|(key, value)| (key, ByteString(value))).collect();
    let patch = serde_json::json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": {"name": name, "labels": {"app.kubernetes.io/managed-by": "flopwatch"}},
        "data": data,
    });
    let params = PatchParams::apply(OPERATOR_FIELD_MANAGER).force();
    bounded(
        "writing a certificate secret",
        secrets.patch(name, &params, &Patch::Apply(&patch)),
    )
    .await?;
    tracing::info!(secret = name, "wrote a certificate");
    Ok(())
}

/// Writes the bundle to the ConfigMap that clients of the gateway may read; the Secret holds the
/// key as well.
async fn publish_authority(client: &Client, options: &CertificateOptions, bundle: &str) -> Result<(), CallError> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), &options.namespace);
    let name = options.gateway_authority.as_str();
    let current = bounded("reading the gateway's authority", api.get_opt(name)).await?;
    let data = current.and_then(|current| current.data).unwrap_or_default();
    if data.get(BUNDLE).is_some_and(|current| current == bundle) {
        return Ok(());
    }
    let patch = serde_json::json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"app.kubernetes.io/managed-by": "flopwatch"}},
        "data": {BUNDLE: bundle},
    });
    let params = PatchParams::apply(OPERATOR_FIELD_MANAGER).force();
    bounded(
        "writing the gateway's authority",
        api.patch(name, &params, &Patch::Apply(&patch)),
    )
    .await?;
    tracing::info!(
        config_map = name,
        "wrote the authority that clients of the gateway trust"
    );
    Ok(())
}

/// Puts the bundle into every webhook of the configuration that calls our Service.
async fn trust_authority(client: &Client, options: &CertificateOptions, bundle: &str) -> Result<(), CallError> {
    let api: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    let name = options.webhook_configuration.as_str();
    let Some(configuration) = bounded("reading the webhook configuration", api.get_opt(name)).await? else {
        tracing::debug!(name, "there is no webhook configuration to trust the authority");
        return Ok(());
    };
    let operations = trust_operations(&configuration, options, bundle);
    if operations.is_empty() {
        return Ok(());
    }
    let patch = Patch::Json::<()>(json_patch::Patch(operations));
    bounded(
        "writing the webhook configuration",
        api.patch(name, &PatchParams::default(), &patch),
    )
    .await?;
    tracing::info!(name, "webhook configuration trusts the authority");
    Ok(())
}

fn trust_operations(
    configuration: &MutatingWebhookConfiguration,
    options: &CertificateOptions,
    bundle: &str,
) -> Vec<PatchOperation> {
    let encoded = ByteString(bundle.as_bytes().to_vec());
    let mut operations = Vec::new();
    for (index, webhook) in configuration.webhooks.iter().flatten().enumerate() {
        let ours =
            webhook.client_config.service.as_ref().is_some_and(|service| {
                service.name == options.webhook_service && service.namespace == options.namespace
            });
        if !ours || webhook.client_config.ca_bundle.as_ref() == Some(&encoded) {
            continue;
        }
        let index = index.to_string();
        operations.push(PatchOperation::Test(TestOperation {
            path: PointerBuf::from_tokens(["webhooks", &index, "name"]),
            value: serde_json::Value::String(webhook.name.clone()),
        }));
        operations.push(PatchOperation::Add(AddOperation {
            path: PointerBuf::from_tokens(["webhooks", &index, "clientConfig", "caBundle"]),
            value: serde_json::json!(encoded),
        }));
    }
    operations
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::certificates::{AgentNames, Names};

    #[test]
    fn only_our_webhooks_are_told_whom_to_trust_and_only_once() {
        let options = CertificateOptions {
            namespace: "flopwatch".into(),
            authority_secret: "a".into(),
            webhook_secret: "w".into(),
            names: Names::default(),
            webhook_service: "flopwatch-admission".into(),
            webhook_configuration: "flopwatch".into(),
            controller_secret: "g".into(),
            gateway_secret: "y".into(),
            gateway_authority: "c".into(),
            agents: AgentNames {
                user: "u".into(),
                server_name: "n".into(),
            },
        };
        let webhook = |name: &str, service: &str| {
            json!({
                "name": name, "admissionReviewVersions": ["v1"], "sideEffects": "None",
                "clientConfig": {"service": {"name": service, "namespace": "flopwatch"}}
            })
        };
        let mut document = json!({
            "metadata": {"name": "flopwatch"},
            "webhooks": [webhook("x.other.dev", "other"), webhook("pods.flopwatch.dev", "flopwatch-admission")]
        });
        let read = |document: &serde_json::Value| serde_json::from_value(document.clone()).unwrap();
        let operations = trust_operations(&read(&document), &options, "bundle");
        json_patch::patch(&mut document, &operations).unwrap();
        assert_eq!(document["webhooks"][1]["clientConfig"]["caBundle"], "YnVuZGxl");
        assert!(document["webhooks"][0]["clientConfig"].get("caBundle").is_none());
        assert_eq!(trust_operations(&read(&document), &options, "bundle"), []);
    }
}
