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
use serde_json::json;
use tokio::process::Command;

use crate::chart;
pub use crate::turns::Group;
use crate::turns::{Place, Turn};

/// Longest wait for one state: the start of an image, garbage collection, the captures of other
/// tests that the agent carries out first.
pub const STATE_TIMEOUT: Duration = Duration::from_mins(4);

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

    /// A client with that bearer token and nothing else.
    ///
    /// # Errors
    /// When the kubeconfig cannot be read.
    pub async fn client_with(&self, token: &str) -> Result<Client> {
        let mut config = Config::infer().await?;
        config.auth_info = AuthInfo {
            token: Some(token.to_owned().into()),
            ..AuthInfo::default()
        };
        Ok(Client::try_from(config)?)
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
        Ok(TestNamespace {
            client: self.client.clone(),
            name: name.to_owned(),
        })
    }
}

/// A namespace that its test deletes at its end; `cargo xtask cluster down` removes what a failed
/// test left.
pub struct TestNamespace {
    /// Client with the administrator's rights.
    pub client: Client,
    /// Name of the namespace.
    pub name: String,
}

impl TestNamespace {
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
        let role = "flopwatch-pod-templates";
        let bind = [
            "-n",
            &self.name,
            "create",
            "rolebinding",
            role,
            &format!("--clusterrole={role}"),
            &account,
        ];
        run("kubectl", &bind).await?;
        let controller = format!("--as=system:serviceaccount:{}:flopwatch-controller", chart::NAMESPACE);
        eventually("the controller to be allowed to create pods", || async {
            // It fails for as long as the answer is no.
            run(
                "kubectl",
                &["-n", &self.name, "auth", "can-i", "create", "pods", &controller],
            )
            .await?;
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
