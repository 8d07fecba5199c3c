//! Signs the agents' certificates: one for each node, whose key never leaves it.
//!
//! An agent asks by a CertificateSigningRequest. The API server writes into it who asked, and for a
//! token that is bound to a pod the pod's node: only that node's name is signed.

use std::collections::BTreeSet;
use std::time::Duration;

use flopwatch_api::{AGENT_SIGNER, agent_server_name};
use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::watcher::{self, Event};
use kube::{Client, ResourceExt as _};
use rcgen::{CertificateSigningRequestParams, PublicKey, SanType};
use serde_json::json;

use crate::certificates::issue::sign;
use crate::certificates::{CertificateError, CertificateOptions, publish};
use crate::deadline::bounded;
use crate::metrics::Metrics;
use crate::watch::events;

/// What the API server says of a token that is bound to a pod.
const NODE_OF_TOKEN: &str = "authentication.kubernetes.io/node-name";
/// Time until a request is tried again that could not be signed.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);
/// Most requests that wait to be tried again.
const MAX_QUEUED_REQUESTS: usize = 4096;

/// For whom is signed.
#[derive(Clone, Debug)]
pub struct AgentNames {
    /// User name of the agents' service account.
    pub user: String,
    /// DNS name under which any agent is asked for.
    pub server_name: String,
}

/// What becomes of a request.
enum Verdict {
    /// Nothing more: it is signed, or refused.
    Settled,
    /// The request is signed for these names.
    Sign { key: PublicKey, names: Vec<String> },
    /// The request is refused, for this reason.
    Refuse(String),
}

/// Decides whether a request is signed.
fn judge(request: &CertificateSigningRequest, agents: &AgentNames) -> Verdict {
    let status = request.status.as_ref();
    let is_over = status.is_some_and(|status| {
        let conditions = status.conditions.as_deref().unwrap_or_default();
        let refused = conditions
            .iter()
            .any(|one| one.type_ == "Denied" || one.type_ == "Failed");
        refused || status.certificate.is_some()
    });
    if is_over {
        return Verdict::Settled;
    }
    let refuse = |why: &str| Verdict::Refuse(why.to_owned());
    let spec = &request.spec;
    if spec.username.as_deref() != Some(agents.user.as_str()) {
        return refuse("only agents are signed for");
    }
    let node = spec.extra.as_ref().and_then(|extra| extra.get(NODE_OF_TOKEN));
    let Some([node]) = node.map(Vec::as_slice) else {
        return refuse("the token that asked is not bound to a node");
    };
    let usages = spec.usages.as_deref().unwrap_or_default();
    if usages.is_empty()
        || !usages
            .iter()
            .all(|usage| usage == "digital signature" || usage == "server auth")
    {
        return refuse("agents serve, and nothing else");
    }
    let read = str::from_utf8(&spec.request.0)
        .ok()
        .and_then(|pem| CertificateSigningRequestParams::from_pem(pem).ok());
    let Some(read) = read else {
        return refuse("the request cannot be read, or is not signed with its own key");
    };
    let names = vec![agents.server_name.clone(), agent_server_name(node, &agents.server_name)];
    let asked: Option<BTreeSet<String>> = read.params.subject_alt_names.iter().map(dns_name).collect();
    if asked != Some(names.iter().cloned().collect()) {
        return Verdict::Refuse(format!(
            "an agent on node {node} is signed for {} alone",
            names.join(" and ")
        ));
    }
    Verdict::Sign {
        key: read.public_key,
        names,
    }
}

fn dns_name(name: &SanType) -> Option<String> {
    match name {
        SanType::DnsName(name) => Some(name.to_string()),
        _ => None,
    }
}

/// Signs what agents ask for, for ever.
pub async fn keep(client: &Client, options: &CertificateOptions, metrics: &Metrics) {
    let api: Api<CertificateSigningRequest> = Api::all(client.clone());
    let ours = watcher::Config::default().fields(&format!("spec.signerName={AGENT_SIGNER}"));
    let mut requests =
        events::<CertificateSigningRequest>(Api::all(client.clone()), ours, std::convert::identity, metrics.clone());
    let mut again: BTreeSet<String> = BTreeSet::new();
    loop {
        let found = tokio::select! {
            event = requests.next() => match event {
                None => return,
                Some(Event::Apply(request) | Event::InitApply(request)) => vec![request],
                Some(Event::Delete(request)) => {
                    again.remove(&request.name_any());
                    continue;
                }
                Some(Event::Init | Event::InitDone) => continue,
            },
            () = tokio::time::sleep(RETRY_INTERVAL), if !again.is_empty() => {
                let mut found = Vec::new();
                for name in std::mem::take(&mut again) {
                    match bounded("reading a request for a certificate", api.get_opt(&name)).await {
                        Ok(request) => found.extend(request),
                        Err(_) => drop(again.insert(name)),
                    }
                }
                found
            }
        };
        for request in found {
            let outcome = match settle(client, options, &request).await {
                Ok(None) => continue,
                Ok(Some(outcome)) => outcome,
                Err(error) => {
                    tracing::warn!(request = request.name_any(), %error, "a request for a certificate is tried again");
                    if again.len() < MAX_QUEUED_REQUESTS {
                        again.insert(request.name_any());
                    }
                    error.outcome()
                }
            };
            metrics
                .reconciliations
                .with_label_values(&["agent-certificates", outcome])
                .inc();
        }
    }
}

/// Signs a request or refuses it; None where nothing was to be done.
async fn settle(
    client: &Client,
    options: &CertificateOptions,
    request: &CertificateSigningRequest,
) -> Result<Option<&'static str>, CertificateError> {
    let api: Api<CertificateSigningRequest> = Api::all(client.clone());
    let name = request.name_any();
    let params = PatchParams::default();
    let decided = |kind: &str, message: &str| {
        let condition = json!({"type": kind, "status": "True", "reason": "FlopwatchController", "message": message});
        Patch::Merge(json!({"status": {"conditions": [condition]}}))
    };
    match judge(request, &options.agents) {
        Verdict::Settled => Ok(None),
        Verdict::Refuse(why) => {
            tracing::warn!(
                request = name,
                user = request.spec.username,
                why,
                "refusing a certificate"
            );
            let refused = decided("Denied", &why);
            bounded("refusing a certificate", api.patch_approval(&name, &params, &refused)).await?;
            Ok(Some("completed"))
        }
        Verdict::Sign { key, names } => {
            let authority = publish::read_authority(client, options).await?;
            let certificate = sign(
                authority.as_ref(),
                &key,
                &names,
                request.spec.expiration_seconds,
                Timestamp::now(),
            )?;
            let approved = decided("Approved", "asked for by the agent of that node");
            bounded("approving a certificate", api.patch_approval(&name, &params, &approved)).await?;
            let signed = Patch::Merge(json!({"status": {"certificate": ByteString(certificate.into_bytes())}}));
            bounded("signing a certificate", api.patch_status(&name, &params, &signed)).await?;
            tracing::info!(request = name, ?names, "signed an agent's certificate");
            Ok(Some("completed"))
        }
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair};

    use super::*;
    use crate::certificates::material::Facts;
    use crate::certificates::{Material, Names, carry_out, decide};

    const USER: &str = "system:serviceaccount:ns:flopwatch-agent";

    fn agents() -> AgentNames {
        AgentNames {
            user: USER.to_owned(),
            server_name: "flopwatch-agent.ns.svc".to_owned(),
        }
    }

    /// As the API server shows it: asked for by `user` on `node`, for these names.
    fn request(user: &str, node: Option<&str>, usages: &[&str], names: &[&str]) -> CertificateSigningRequest {
        let params = CertificateParams::new(names.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap();
        let pem = params
            .serialize_request(&KeyPair::generate().unwrap())
            .unwrap()
            .pem()
            .unwrap();
        let mut request = json!({
            "metadata": {"name": "r"},
            "spec": {
                "signerName": AGENT_SIGNER, "request": ByteString(pem.into_bytes()), "usages": usages, "username": user,
                "expirationSeconds": 604_800
            }
        });
        if let Some(node) = node {
            request["spec"]["extra"] = json!({ NODE_OF_TOKEN: [node] });
        }
        serde_json::from_value(request).unwrap()
    }

    fn refusal(request: &CertificateSigningRequest) -> String {
        match judge(request, &agents()) {
            Verdict::Refuse(why) => why,
            Verdict::Settled => "settled".to_owned(),
            Verdict::Sign { names, .. } => format!("signed for {names:?}"),
        }
    }

    const ANY: &str = "flopwatch-agent.ns.svc";
    const OWN: &str = "a.flopwatch-agent.ns.svc";
    const OTHER: &str = "b.flopwatch-agent.ns.svc";
    const SERVES: [&str; 2] = ["digital signature", "server auth"];

    #[test]
    fn a_node_is_signed_for_its_own_name_and_for_no_other() {
        let cases = [
            (request(USER, Some("a"), &SERVES, &[ANY, OWN]), "signed for"),
            (
                request(USER, Some("a"), &SERVES, &[ANY, OTHER]),
                "on node a is signed for",
            ),
            (
                request(USER, Some("a"), &SERVES, &[ANY, OWN, OTHER]),
                "on node a is signed for",
            ),
            (
                request(USER, Some("a"), &SERVES, &[ANY, "*.flopwatch-agent.ns.svc"]),
                "on node a is signed for",
            ),
            (
                request(USER, Some("a"), &SERVES, &["flopwatch-gateway.ns.svc"]),
                "on node a is signed for",
            ),
            (
                request(USER, Some("a"), &SERVES, &[ANY, OWN, "10.0.0.1"]),
                "on node a is signed for",
            ),
            (request(USER, Some("a"), &SERVES, &[]), "on node a is signed for"),
            (request(USER, None, &SERVES, &[ANY, OWN]), "not bound to a node"),
            (
                request(
                    "system:serviceaccount:team:flopwatch-agent",
                    Some("a"),
                    &SERVES,
                    &[ANY, OWN],
                ),
                "only agents",
            ),
            (
                request(USER, Some("a"), &["server auth", "client auth"], &[ANY, OWN]),
                "agents serve",
            ),
            (request(USER, Some("a"), &[], &[ANY, OWN]), "agents serve"),
        ];
        for (request, expected) in cases {
            let text = refusal(&request);
            assert!(text.contains(expected), "{expected}: {text}");
        }
        let mut junk = request(USER, Some("a"), &SERVES, &[ANY, OWN]);
        junk.spec.request = ByteString(b"junk".to_vec());
        assert!(refusal(&junk).contains("cannot be read"));
    }

    #[test]
    fn what_is_decided_stays_so() {
        for status in [
            json!({"certificate": ByteString(b"x".to_vec())}),
            json!({"conditions": [{"type": "Denied", "status": "True"}]}),
        ] {
            let mut decided = request(USER, Some("a"), &SERVES, &[ANY, OWN]);
            decided.status = serde_json::from_value(status).unwrap();
            assert_eq!(refusal(&decided), "settled");
        }
        // Approved and not signed: the controller ended between the two.
        let mut approved = request(USER, Some("a"), &SERVES, &[ANY, OWN]);
        approved.status =
            serde_json::from_value::<Option<_>>(json!({"conditions": [{"type": "Approved", "status": "True"}]}))
                .unwrap();
        assert!(refusal(&approved).starts_with("signed for"));
    }

    #[test]
    fn a_certificate_is_of_the_authority_for_the_names_and_the_time_that_were_asked_for() {
        let names = Names::default();
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let decision = decide(&Material::default(), &names, now);
        let made = carry_out(&decision, &Material::default(), &names, now).unwrap();
        let Verdict::Sign { key, names } = judge(&request(USER, Some("a"), &SERVES, &[ANY, OWN]), &agents()) else {
            panic!("it is signed");
        };
        for (asked, days) in [(Some(604_800), 7), (None, 90), (Some(i32::MAX), 90)] {
            let pem = sign(made.authority.as_ref(), &key, &names, asked, now).unwrap();
            let facts = Facts::of(&pem).unwrap();
            assert_eq!(facts.names, names);
            assert_eq!(
                facts.issuer,
                Facts::of(&made.authority.as_ref().unwrap().certificate)
                    .unwrap()
                    .subject
            );
            assert_eq!((facts.not_after.as_second() - now.as_second()) / 86_400, days);
        }
        assert!(sign(None, &key, &names, None, now).is_err());
    }
}
