//! The kubectl plugin in the hands of a user who may profile in one namespace and knows nothing
//! else of the cluster.

use anyhow::{Context as _, Result, ensure};
use flopwatch_api::session::ProfilingSession;
use flopwatch_model::Category;
use flopwatch_system_tests::cluster::{Group, TestNamespace};
use flopwatch_system_tests::fetch::reader_token;
use flopwatch_system_tests::pods::sample;
use flopwatch_system_tests::user::{User, may_reach_gateway, plain};
use flopwatch_trace::ReadLimits;
use kube::api::Api;

#[tokio::test]
async fn a_user_profiles_and_fetches_with_the_plugin_alone() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "plugin").await? else {
        return Ok(());
    };
    namespace.launch(sample("trainer")).await?;
    let token = reader_token(&namespace, "user", "flopwatch-user").await?;
    namespace.bind("sees-pods", "view", "user").await?;
    let folder = tempfile::tempdir()?;
    let user = User::new(folder.path(), &namespace, &token).await?;

    let looked = user.flopwatch(&["doctor", "pod/trainer"]).await?;
    ensure!(looked.code == Some(0), "{looked:?}");
    let profiled = user
        .flopwatch(&["profile", "pod/trainer", "--duration", "1s", "--name", "mine", "--wait"])
        .await?;
    ensure!(profiled.code == Some(0), "{profiled:?}");
    let listed = user.flopwatch(&["sessions", "-o", "name"]).await?;
    ensure!(
        listed.code == Some(0) && listed.out.trim().ends_with("/mine"),
        "{listed:?}"
    );
    let described = user.flopwatch(&["describe", "mine"]).await?;
    ensure!(
        described.code == Some(0) && described.out.contains("timeline.h5"),
        "{described:?}"
    );

    let output = folder.path().join("fetched");
    let fetch = ["fetch", "mine", "--output", output.to_str().context("a path")?];
    let refused = user.flopwatch(&fetch).await?;
    ensure!(
        refused.code == Some(1) && refused.problems.contains("flopwatch-gateway-caller"),
        "whoever may not reach the gateway hears of the role that allows it: {refused:?}"
    );
    ensure!(!output.exists(), "nothing was fetched");
    let caller = may_reach_gateway(&namespace, "user").await?;
    let fetched = user.flopwatch(&fetch).await?;
    let (_shown, url) = user.open("mine").await?;
    let page = url.replace("/artifacts/timeline.h5", "/analyses/advice");
    let advice = plain(&page).await?;
    ensure!(
        advice.starts_with("HTTP/1.1 200") && advice.contains("findings"),
        "the viewer's first page has no advice: {advice}"
    );
    let unknown = plain(&page.replace("advice", "no-such-analysis")).await?;
    ensure!(unknown.starts_with("HTTP/1.1 404"), "{unknown}");
    caller.end().await?;
    ensure!(fetched.code == Some(0), "{fetched:?}");
    let timeline = output.join("timeline.h5");
    let recording = flopwatch_trace::timeline_file::read(&timeline, &ReadLimits::default())?.capture;
    let ranges = recording.events.get(&Category::NvtxRange).context("no NVTX ranges")?;
    ensure!(!ranges.is_empty(), "an empty timeline");

    let sessions: Api<ProfilingSession> = namespace.api();
    let before = sessions.get("mine").await?;
    let again = user.flopwatch(&["profile", "trainer", "--name", "mine"]).await?;
    ensure!(again.code == Some(1), "a name that is taken is refused: {again:?}");
    ensure!(sessions.get("mine").await?.metadata.uid == before.metadata.uid);
    namespace.delete().await
}
