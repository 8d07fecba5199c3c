//! The cluster under test, and namespaces that end with their test.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail};
use flopwatch_api::capture::Capture;
use flopwatch_api::schedule::ProfilingSchedule;
use flopwatch_api::session::ProfilingSession;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use kube::config::AuthInfo;
use kube::{Client, Config};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tempfile::NamedTempFile;
use tokio::process::Command;
use tokio::sync::OnceCell;

use crate::chart;
use crate::fetch::{reader_token, token};
pub use crate::turns::Group;
use crate::turns::{Place, Turn};

/// Longest wait for one state: the start of an image, garbage collection, the captures of other
/// tests that the agent carries out first.
pub const STATE_TIMEOUT: Duration = Duration::from_mins(4);

/// The account of a namespace by which its artifacts are read.
const READER: &str = "reader";

/// A connection to the cluster with the chart installed. Other groups of tests wait until it is
/// dropped.
#[derive(Clone)]
pub struct Cluster {
    /// Client with the administrator's rights.
    pub client: Client,
    _turn: Arc<Turn>,
}

impl Cluster {
    /// Connects in the turn of the test's group, whose first test installs the chart, or says why
    /// the test is skipped.
    ///
    /// # Errors
    /// When the tests are asked for and the cluster or the chart is not usable.
    pub async fn connect(group: Group) -> Result<Option<Self>> {
        Self::join(group, Place::AsItCame, async |_| Ok(()), &[]).await
    }

    /// Connects as [`Self::connect`] does, before the tests of the group that do not say so: for a
    /// test that takes long, which would be left over at the end of the group's turn.
    ///
    /// # Errors
    /// Those of [`Self::connect`].
    pub async fn connect_first(group: Group) -> Result<Option<Self>> {
        Self::join(group, Place::First, async |_| Ok(()), &[]).await
    }

    /// Connects as [`Self::connect`] does, with work that comes before the chart is installed, and
    /// with options of helm.
    ///
    /// # Errors
    /// When the tests are asked for, and the work fails or the cluster or the chart is not usable.
    pub async fn connect_after(
        group: Group,
        work: impl AsyncFnOnce(&Client) -> Result<()>,
        options: &[&str],
    ) -> Result<Option<Self>> {
        Self::join(group, Place::AsItCame, work, options).await
    }

    #[expect(clippy::print_stdout, reason = "the test runner reads these lines")]
    async fn join(
        group: Group,
        place: Place,
        work: impl AsyncFnOnce(&Client) -> Result<()>,
        options: &[&str],
    ) -> Result<Option<Self>> {
        if std::env::var_os("FLOPWATCH_SYSTEM_TESTS").is_none() {
            println!("skipped: no cluster (cargo xtask test brings one up)");
            return Ok(None);
        }
        let asked = Instant::now();
        let turn = Turn::of(group, place).await;
        let config = Config::infer().await.context("reading KUBECONFIG")?;
        let client = Client::try_from(config)?;
        turn.begin(async || {
            work(&client).await?;
            chart::upgrade(&chart::folder(), options).await
        })
        .await?;
        // What came before is no time of the test's own.
        println!("its turn came after {:.3} s", asked.elapsed().as_secs_f64());
        Ok(Some(Self {
            client,
            _turn: Arc::new(turn),
        }))
    }

    /// A namespace of the test's own, at Pod Security level "restricted".
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn namespace(&self, name: &str) -> Result<TestNamespace> {
        let suffix = SystemTime::now().duration_since(UNIX_EPOCH)?.subsec_micros();
        self.namespace_called(&format!("{name}-{suffix:05x}")).await
    }

    /// A namespace of that very name, otherwise as [`Cluster::namespace`].
    ///
    /// # Errors
    /// When the API server refuses it: it is there already.
    pub async fn namespace_called(&self, name: &str) -> Result<TestNamespace> {
        let namespace: Namespace = serde_json::from_value(json!({
            "metadata": { "name": name, "labels": { "pod-security.kubernetes.io/enforce": "restricted" } }
        }))?;
        Api::<Namespace>::all(self.client.clone())
            .create(&PostParams::default(), &namespace)
            .await?;
        // Pods are refused until the controller manager has made the namespace's service account.
        eventually(&format!("the default service account of {name}"), || async {
            let accounts: Api<k8s_openapi::api::core::v1::ServiceAccount> = Api::namespaced(self.client.clone(), name);
            Ok(accounts.get_opt("default").await?)
        })
        .await?;
        Ok(TestNamespace::existing(self, name))
    }
}

/// A namespace that its test deletes at its end; `cargo xtask cluster down` removes what a failed
/// test left.
pub struct TestNamespace {
    /// Client with the administrator's rights.
    pub client: Client,
    /// Name of the namespace.
    pub name: String,
    /// The cluster, which other groups of tests wait for.
    pub cluster: Cluster,
    /// Made with the account by which artifacts are read.
    reader: OnceCell<()>,
}

impl TestNamespace {
    /// [Connects](Cluster::connect) to the cluster in the turn of the test's group, with a
    /// [namespace](Cluster::namespace) of its own; none where the test is skipped.
    ///
    /// # Errors
    /// Those of connecting, and when the API server refuses the namespace.
    pub async fn begin(group: Group, name: &str) -> Result<Option<Self>> {
        match Cluster::connect(group).await? {
            Some(cluster) => cluster.namespace(name).await.map(Some),
            None => Ok(None),
        }
    }

    /// Begins as [`Self::begin`] does, [before the others](Cluster::connect_first) of the group.
    ///
    /// # Errors
    /// Those of [`Self::begin`].
    pub async fn begin_first(group: Group, name: &str) -> Result<Option<Self>> {
        match Cluster::connect_first(group).await? {
            Some(cluster) => cluster.namespace(name).await.map(Some),
            None => Ok(None),
        }
    }

    /// A namespace that is there.
    pub fn existing(cluster: &Cluster, name: &str) -> Self {
        Self {
            client: cluster.client.clone(),
            name: name.to_owned(),
            cluster: cluster.clone(),
            reader: OnceCell::new(),
        }
    }

    /// A fresh token of an account that may read this namespace's artifacts, but not Raw.
    ///
    /// # Errors
    /// When the API server makes none.
    pub async fn reader(&self) -> Result<String> {
        let make = || async { reader_token(self, READER, "flopwatch-viewer").await.map(drop) };
        self.reader.get_or_try_init(make).await?;
        token(&self.name, READER).await
    }

    /// Runs kubectl as the administrator with these words about this namespace, and returns what it
    /// printed.
    ///
    /// # Errors
    /// When it fails, with what it printed on both streams.
    pub async fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        kubectl(&self.name, arguments).await
    }

    /// Binds a ClusterRole to a service account of the namespace, as its administrator would. Safe
    /// to run twice.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn bind(&self, binding: &str, role: &str, account: &str) -> Result<()> {
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": { "name": binding },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role },
            "subjects": [{ "kind": "ServiceAccount", "name": account, "namespace": self.name }]
        });
        apply(&self.name, &binding).await
    }

    /// Creates what a manifest says, as a user does: also what the types cannot hold.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn create_untyped(&self, manifest: &Value) -> Result<String> {
        kubectl_file(&self.name, "create", manifest).await
    }

    /// The API of a namespaced kind here.
    pub fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client.clone(), &self.name)
    }

    /// Lets sessions make pods here, as an administrator of the namespace would.
    ///
    /// # Errors
    /// When the binding is refused, or the API server does not act on it in time.
    pub async fn allow_pod_templates(&self) -> Result<()> {
        let account = format!("--serviceaccount={}:flopwatch-controller", chart::NAMESPACE);
        let (name, role) = ("flopwatch-pod-templates", "--clusterrole=flopwatch-pod-templates");
        self.kubectl(&["create", "rolebinding", name, role, &account]).await?;
        let controller = format!("--as=system:serviceaccount:{}:flopwatch-controller", chart::NAMESPACE);
        eventually("the controller to be allowed to create pods", || async {
            // It fails for as long as the answer is no.
            self.kubectl(&["auth", "can-i", "create", "pods", &controller]).await?;
            Ok(Some(()))
        })
        .await
    }

    /// Ends the test: deletes what Flopwatch has here and waits until that is gone, so that a
    /// finalizer that hangs fails the test. The namespace and its pods go while the next test runs.
    ///
    /// Nothing of a test hangs on the namespace itself, and its controller takes its time: it looks
    /// 5 s after the deletion, and 5 to 8 s later once more where a finalizer or a pod was in its
    /// way.
    ///
    /// # Errors
    /// When a session, a schedule or a capture is still there after [`STATE_TIMEOUT`].
    pub async fn delete(self) -> Result<()> {
        eventually(&format!("what Flopwatch has in {} to be gone", self.name), || async {
            let made = self.emptied::<ProfilingSchedule>().await? + self.emptied::<ProfilingSession>().await?;
            // Captures go with their sessions.
            let left = if made == 0 {
                self.emptied::<Capture>().await?
            } else {
                made
            };
            Ok((left == 0).then_some(()))
        })
        .await?;
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        namespaces.delete(&self.name, &DeleteParams::default()).await?;
        let now = DeleteParams::default().grace_period(1);
        self.api::<Pod>()
            .delete_collection(&now, &ListParams::default())
            .await?;
        Ok(())
    }

    /// Deletes the namespace with all that is in it, as a user does, and waits until it is gone.
    ///
    /// # Errors
    /// When it is still there after [`STATE_TIMEOUT`].
    pub async fn delete_whole(self) -> Result<()> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        namespaces.delete(&self.name, &DeleteParams::default()).await?;
        eventually(&format!("namespace {} to be gone", self.name), || async {
            Ok(namespaces.get_opt(&self.name).await?.is_none().then_some(()))
        })
        .await
    }

    /// Deletes the objects of a kind and returns how many are still there.
    async fn emptied<K>(&self) -> Result<usize>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
        K::DynamicType: Default,
    {
        let api = self.api::<K>();
        let listed = api.list(&ListParams::default()).await?.items;
        if listed.iter().any(|object| object.meta().deletion_timestamp.is_none()) {
            api.delete_collection(&DeleteParams::default(), &ListParams::default())
                .await?;
        }
        Ok(listed.len())
    }
}

/// Asks again and again, five times a second, until `probe` has an answer; errors count as "not
/// yet" and are reported when the patience ends.
///
/// # Errors
/// When [`STATE_TIMEOUT`] passed without an answer.
pub async fn eventually<T, F, Fut>(what: &str, probe: F) -> Result<T>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<Option<T>>>,
{
    eventually_each(Duration::from_millis(200), what, probe).await
}

/// Asks as [`eventually`] does, with `pause` between two looks.
///
/// # Errors
/// When [`STATE_TIMEOUT`] passed without an answer.
pub async fn eventually_each<T, F, Fut>(pause: Duration, what: &str, mut probe: F) -> Result<T>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<Option<T>>>,
{
    let deadline = tokio::time::Instant::now() + STATE_TIMEOUT;
    loop {
        let answer = probe().await;
        if let Ok(Some(answer)) = answer {
            return Ok(answer);
        }
        if tokio::time::Instant::now() > deadline {
            match answer {
                Err(error) => return Err(error.context(format!("waiting {STATE_TIMEOUT:?} for {what}"))),
                Ok(_) => bail!("{what}: not so after {STATE_TIMEOUT:?}"),
            }
        }
        tokio::time::sleep(pause).await;
    }
}

/// A client with that bearer token and nothing else.
///
/// # Errors
/// When the kubeconfig cannot be read.
pub async fn client_with(token: &str) -> Result<Client> {
    let mut config = Config::infer().await?;
    config.auth_info = AuthInfo {
        token: Some(token.to_owned().into()),
        ..AuthInfo::default()
    };
    Ok(Client::try_from(config)?)
}

/// What has the API server say what it would make, and make nothing.
pub fn dry_run() -> PostParams {
    PostParams {
        dry_run: true,
        ..PostParams::default()
    }
}

/// Runs kubectl with these words about a namespace, and returns what it printed.
///
/// # Errors
/// When it fails, with what it printed on both streams.
pub async fn kubectl(namespace: &str, arguments: &[&str]) -> Result<String> {
    run("kubectl", &[&["-n", namespace][..], arguments].concat()).await
}

/// Applies a manifest in a namespace, as the administrator. Safe to run twice.
///
/// # Errors
/// When the API server refuses it.
pub async fn apply(namespace: &str, manifest: &Value) -> Result<()> {
    kubectl_file(namespace, "apply", manifest).await.map(drop)
}

/// Runs kubectl with a command that takes a manifest from a file, and returns what it printed.
async fn kubectl_file(namespace: &str, command: &str, manifest: &Value) -> Result<String> {
    let file = NamedTempFile::new()?;
    std::fs::write(file.path(), manifest.to_string())?;
    let path = file.path().to_str().context("a path that is not UTF-8")?;
    kubectl(namespace, &[command, "-f", path]).await
}

/// Runs a program with a deadline and returns what it printed.
///
/// # Errors
/// When it fails, with what it printed on both streams.
pub async fn run(program: &str, arguments: &[&str]) -> Result<String> {
    let child = Command::new(program).args(arguments).kill_on_drop(true).output();
    let output = tokio::time::timeout(STATE_TIMEOUT * 2, child)
        .await
        .with_context(|| format!("{program} {arguments:?} did not end"))?
        .with_context(|| format!("starting {program}"))?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        bail!(
            "{program} {arguments:?}: {}\n{stdout}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(stdout)
}
