//! The cluster's certificate authority, its certificates and the kubeconfigs made of them.

use super::layout::{API_PORT, API_SERVICE_ADDRESS, CONTROL_ADDRESS, Layout, NodeLayout};
use anyhow::Result;
use flopwatch_toolchain::command::Run;
use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;

const DAYS: &str = "365";

/// Somebody with a certificate of the cluster's authority.
struct Identity {
    name: String,
    common_name: String,
    group: Option<&'static str>,
    /// Subject alternative names; servers have them.
    names: Vec<String>,
}

impl Identity {
    fn new(name: &str, common_name: &str) -> Self {
        Self {
            name: name.to_owned(),
            common_name: common_name.to_owned(),
            group: None,
            names: Vec::new(),
        }
    }

    fn group(mut self, group: &'static str) -> Self {
        self.group = Some(group);
        self
    }

    fn names(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.names.extend(names);
        self
    }

    fn subject(&self) -> String {
        let group = self.group.map(|group| format!("/O={group}")).unwrap_or_default();
        format!("{group}/CN={}", self.common_name)
    }

    fn extensions(&self) -> String {
        let purpose = "basicConstraints=critical,CA:FALSE
keyUsage=critical,digitalSignature
\
                       extendedKeyUsage=serverAuth,clientAuth
";
        if self.names.is_empty() {
            return purpose.to_owned();
        }
        format!(
            "{purpose}subjectAltName={}
",
            self.names.join(",")
        )
    }
}

fn identities(nodes: &[NodeLayout]) -> Vec<Identity> {
    let dns = [
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "localhost",
    ]
    .map(|name| format!("DNS:{name}"));
    let addresses = [Ipv4Addr::LOCALHOST, API_SERVICE_ADDRESS, CONTROL_ADDRESS].map(|address| format!("IP:{address}"));
    let server_names = dns.into_iter().chain(addresses);
    let mut all = vec![
        Identity::new("apiserver", "kube-apiserver").names(server_names),
        Identity::new("apiserver-kubelet", "kube-apiserver-kubelet-client").group("system:masters"),
        Identity::new("admin", "flopwatch-admin").group("system:masters"),
        Identity::new("controller-manager", "system:kube-controller-manager"),
        Identity::new("scheduler", "system:kube-scheduler"),
        Identity::new("proxy", "system:kube-proxy"),
    ];
    all.extend(nodes.iter().map(|node| {
        Identity::new(&node.name, &format!("system:node:{}", node.name))
            .group("system:nodes")
            .names([format!("DNS:{}", node.name), format!("IP:{}", node.address)])
    }));
    all
}

/// Makes all keys and certificates, and a kubeconfig for each who needs one.
pub(crate) fn create(layout: &Layout, nodes: &[NodeLayout]) -> Result<()> {
    fs::write(layout.pki("openssl.cnf"), "[req]\ndistinguished_name=none\n[none]\n")?;
    openssl(layout)
        .args(["req", "-x509", "-days", DAYS, "-subj", "/CN=flopwatch-cluster"])
        .args([
            "-addext",
            "basicConstraints=critical,CA:TRUE",
            "-addext",
            "keyUsage=critical,keyCertSign,cRLSign",
        ])
        .args(NEW_KEY)
        .args(["-keyout", "ca.key", "-out", "ca.crt"])
        .quiet()?;
    let identities = identities(nodes);
    for (identity, serial) in identities.iter().zip(2_u32..) {
        sign(layout, identity, serial)?;
    }
    openssl(layout)
        .args([
            "genpkey",
            "-algorithm",
            "EC",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-out",
            "service-account.key",
        ])
        .quiet()?;
    openssl(layout)
        .args([
            "pkey",
            "-in",
            "service-account.key",
            "-pubout",
            "-out",
            "service-account.pub",
        ])
        .quiet()?;
    let server = format!("https://{CONTROL_ADDRESS}:{API_PORT}");
    for identity in identities
        .iter()
        .filter(|identity| !identity.name.starts_with("apiserver"))
    {
        let path = |file: &str| layout.pki(&format!("{}.{file}", identity.name));
        let text = kubeconfig(&server, &layout.pki("ca.crt"), &path("crt"), &path("key"));
        fs::write(layout.kubeconfig(&identity.name), text)?;
    }
    Ok(())
}

const NEW_KEY: [&str; 5] = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];

fn openssl(layout: &Layout) -> Run {
    // The machine's own configuration of OpenSSL may add extensions; this one adds none.
    Run::new("openssl")
        .dir(layout.pki(""))
        .env("OPENSSL_CONF", layout.pki("openssl.cnf"))
}

fn sign(layout: &Layout, identity: &Identity, serial: u32) -> Result<()> {
    let file = |kind: &str| format!("{}.{kind}", identity.name);
    fs::write(layout.pki(&file("ext")), identity.extensions())?;
    openssl(layout)
        .args(["req", "-new", "-subj", &identity.subject()])
        .args(NEW_KEY)
        .args(["-keyout", &file("key"), "-out", &file("csr")])
        .quiet()?;
    openssl(layout)
        .args(["x509", "-req", "-days", DAYS, "-CA", "ca.crt", "-CAkey", "ca.key"])
        .args([
            "-set_serial",
            &serial.to_string(),
            "-in",
            &file("csr"),
            "-extfile",
            &file("ext"),
            "-out",
            &file("crt"),
        ])
        .quiet()
}

fn kubeconfig(server: &str, authority: &Path, certificate: &Path, key: &Path) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: flopwatch\n\
         clusters:\n- name: flopwatch\n  cluster: {{server: \"{server}\", certificate-authority: \"{}\"}}\n\
         users:\n- name: flopwatch\n  user: {{client-certificate: \"{}\", client-key: \"{}\"}}\n\
         contexts:\n- name: flopwatch\n  context: {{cluster: flopwatch, user: flopwatch}}\n",
        authority.display(),
        certificate.display(),
        key.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nodes_certificate_is_what_the_node_authorizer_expects() {
        let node = NodeLayout::new(&layout(), 1);
        let all = identities(std::slice::from_ref(&node));
        let identity = all.iter().find(|identity| identity.name == "node1").unwrap();
        assert_eq!(identity.subject(), "/O=system:nodes/CN=system:node:node1");
        assert!(
            identity
                .extensions()
                .contains("subjectAltName=DNS:node1,IP:10.77.0.1\n")
        );
    }

    #[test]
    fn the_api_server_answers_under_the_name_that_pods_use() {
        let all = identities(&[]);
        let server = all.iter().find(|identity| identity.name == "apiserver").unwrap();
        let text = server.extensions();
        for name in ["DNS:kubernetes.default.svc", "IP:10.96.0.1", "IP:10.77.0.254"] {
            assert!(text.contains(name), "{name} is not in {text}");
        }
    }

    fn layout() -> Layout {
        let folder = tempfile::tempdir().unwrap();
        Layout::open(&flopwatch_toolchain::cache::Cache::at(folder.path())).unwrap()
    }
}
