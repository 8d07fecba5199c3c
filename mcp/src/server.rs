//! Serves tools on standard input and output.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, ServerInitializeError};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::io::stdio_pipes;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt as _};
use serde_json::{Map, Value};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::answer::{Answer, Bounded};
use crate::call::Call;
use crate::description::Description;
use crate::error::{ServeError, ToolError};
use crate::view::{View, beginning};

/// Longest message of a client, in bytes; a longer one is dropped, and the client is told.
pub const MAX_REQUEST_BYTES: usize = 1 << 20;
/// Most calls that run at once.
pub const MAX_RUNNING: usize = 2;
/// Most calls that wait for their turn.
pub const MAX_WAITING: usize = 16;
/// Longest message of an error, in bytes.
const MAX_ERROR_BYTES: usize = 8 << 10;
/// Longest wait for calls that run when the client has gone.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// What a program serves.
pub trait Tools: Send + Sync + 'static {
    /// Name of the server, as clients list it.
    const NAME: &'static str;
    /// Its name for people.
    const TITLE: &'static str;
    /// Whether its tools ask other machines.
    const READS_A_NETWORK: bool;

    /// What clients are told of the server as a whole: what it gives, and in which order to ask.
    fn instructions(&self) -> String;

    /// Its tools.
    fn descriptions(&self) -> Vec<Description>;

    /// Answers a call of one of them. Its arguments have names that the tool has; `call.until` ends
    /// the work early.
    fn call(&self, call: Call) -> impl Future<Output = Result<Answer, ToolError>> + Send;

    /// Hears of each call that was answered, in a line for the log.
    fn log(&self, line: &str);
}

/// Serves `tools` on standard input and output until the client has gone or `stop` is canceled.
/// Calls that run then are ended first.
pub async fn serve(tools: impl Tools, stop: CancellationToken) -> Result<(), ServeError> {
    let (input, output) = stdio_pipes();
    serve_on(tools, input, output, stop).await
}

/// The same on other streams.
pub(crate) async fn serve_on<R, W>(
    tools: impl Tools,
    input: R,
    output: W,
    stop: CancellationToken,
) -> Result<(), ServeError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let server = Server(Arc::new(Inner::new(tools)));
    let turns = Arc::clone(&server.0);
    let transport = AsyncRwTransport::<RoleServer, _, _>::new(input, output).with_max_line_length(MAX_REQUEST_BYTES);
    let running = match server.serve_with_ct(transport, stop).await {
        Ok(running) => running,
        // A client that goes before it has said anything wants nothing.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => return Ok(()),
        Err(error) => return Err(ServeError::Begin(error.to_string())),
    };
    let ended = running.waiting().await;
    // What still runs was told to end, and leaves its files behind where it is not waited for.
    let all = u32::try_from(MAX_RUNNING).unwrap_or(u32::MAX);
    drop(tokio::time::timeout(END_TIMEOUT, turns.running.acquire_many(all)).await);
    ended.map(drop).map_err(|error| ServeError::Ended(error.to_string()))
}

/// The handler of requests, over what its tasks share.
struct Server<T>(Arc<Inner<T>>);

struct Inner<T> {
    tools: T,
    descriptions: Vec<Description>,
    running: Semaphore,
    waiting: Semaphore,
}

impl<T: Tools> Inner<T> {
    fn new(tools: T) -> Self {
        Self {
            descriptions: tools.descriptions(),
            tools,
            running: Semaphore::new(MAX_RUNNING),
            waiting: Semaphore::new(MAX_RUNNING + MAX_WAITING),
        }
    }

    /// Answers a call once its turn has come.
    async fn answer(
        &self,
        description: &Description,
        mut arguments: Map<String, Value>,
        until: CancellationToken,
    ) -> Result<Bounded, ToolError> {
        let tool = description.name().to_owned();
        let names = description.arguments();
        if let Some(name) = arguments.keys().find(|name| !names.contains(name)).cloned() {
            return Err(ToolError::UnknownArgument { tool, name, names });
        }
        let view = View::take(&mut arguments)?;
        let _place = self.waiting.try_acquire().map_err(|_full| ToolError::Busy)?;
        let _turn = tokio::select! {
            turn = self.running.acquire() => turn.map_err(|_closed| ToolError::Canceled)?,
            () = until.cancelled() => return Err(ToolError::Canceled),
        };
        let call = Call {
            tool,
            until: until.clone(),
            arguments,
        };
        let answer = self.tools.call(call).await;
        if until.is_cancelled() {
            return Err(ToolError::Canceled);
        }
        view.of(answer?)
    }
}

impl<T: Tools> ServerHandler for Server<T> {
    fn get_info(&self) -> ServerConfig {
        let name = Implementation::new(T::NAME, env!("CARGO_PKG_VERSION")).with_title(T::TITLE);
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(name)
            .with_instructions(self.0.tools.instructions())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.0.descriptions.iter();
        let tools = tools.map(|description| description.tool(T::READS_A_NETWORK));
        Ok(ListToolsResult::with_all_items(tools.collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let descriptions = &self.0.descriptions;
        let found = descriptions
            .iter()
            .find(|description| description.name() == request.name);
        let Some(description) = found else {
            let names: Vec<&str> = descriptions.iter().map(Description::name).collect();
            let message = format!("there is no tool {:?}; there are {}", request.name, names.join(", "));
            return Err(ErrorData::invalid_params(message, None));
        };
        let begin = Instant::now();
        let arguments = request.arguments.unwrap_or_default();
        let answered = self.0.answer(description, arguments, context.ct).await;
        let took = begin.elapsed().as_secs_f64();
        let (came, result) = match answered {
            Ok(Bounded { text, cut }) => {
                let came = format!("{} bytes{}", text.len(), if cut.is_some() { ", cut" } else { "" });
                let texts = std::iter::once(text).chain(cut);
                (came, CallToolResult::success(texts.map(ContentBlock::text).collect()))
            }
            Err(error) => {
                let message = error.to_string();
                let text = ContentBlock::text(beginning(&message, MAX_ERROR_BYTES));
                ("an error".to_owned(), CallToolResult::error(vec![text]))
            }
        };
        self.0
            .tools
            .log(&format!("{}: {came} in {took:.1} s", description.name()));
        Ok(result.into())
    }
}

#[cfg(test)]
mod tests {
    use rmcp::ServiceError;
    use schemars::JsonSchema;
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Count {
        /// How many.
        count: u64,
    }

    /// Counts, and waits for ever where it is told to count to 0.
    struct Counting;

    impl Tools for Counting {
        const NAME: &'static str = "counting";
        const TITLE: &'static str = "Counting";
        const READS_A_NETWORK: bool = false;

        fn instructions(&self) -> String {
            "Ask it to count.".to_owned()
        }

        fn descriptions(&self) -> Vec<Description> {
            vec![Description::of::<Count>("count", "Count", "Counts.")]
        }

        async fn call(&self, call: Call) -> Result<Answer, ToolError> {
            let until = call.until.clone();
            let Count { count } = call.arguments()?;
            if count == 0 {
                until.cancelled().await;
            }
            Answer::json(&json!({"numbers": (0..count).collect::<Vec<_>>()}))
        }

        fn log(&self, _line: &str) {}
    }

    type Client = rmcp::service::RunningService<rmcp::RoleClient, ()>;

    async fn client(stop: &CancellationToken) -> (Client, tokio::task::JoinHandle<Result<(), ServeError>>) {
        let (near, far) = tokio::io::duplex(64 << 10);
        let (input, output) = tokio::io::split(far);
        let served = tokio::spawn(serve_on(Counting, input, output, stop.clone()));
        (().serve(near).await.unwrap(), served)
    }

    fn call(tool: &'static str, arguments: Value) -> CallToolRequestParams {
        let Value::Object(arguments) = arguments else {
            panic!("an object")
        };
        CallToolRequestParams::new(tool).with_arguments(arguments)
    }

    fn texts(result: &CallToolResult) -> Vec<&str> {
        let texts = result.content.iter().filter_map(ContentBlock::as_text);
        texts.map(|text| text.text.as_str()).collect()
    }

    #[tokio::test]
    async fn an_answer_is_bounded_and_a_wrong_argument_is_an_error_of_the_tool() {
        let (client, served) = client(&CancellationToken::new()).await;
        let info = client.peer_info().unwrap();
        assert_eq!(info.instructions.as_deref(), Some("Ask it to count."));
        let tools = client.list_all_tools().await.unwrap();
        assert_eq!(tools.len(), 1);
        let whole = client.call_tool(call("count", json!({"count": 3}))).await.unwrap();
        assert_eq!(texts(&whole), [r#"{"numbers":[0,1,2]}"#]);
        let cut = json!({"count": 1000, "max_bytes": 1024});
        let cut = client.call_tool(call("count", cut)).await.unwrap();
        let [text, told] = texts(&cut)[..] else {
            panic!("{cut:?}")
        };
        assert!(
            text.len() <= 1024 && told.contains("/numbers has 1000 elements"),
            "{told}"
        );
        for (arguments, words) in [
            (json!({"count": "many"}), "invalid type"),
            (json!({}), "missing field `count`"),
            (json!({"count": 1, "to": 3}), "no argument \"to\"; it has"),
            (json!({"count": 1, "from": "x"}), "whole number"),
        ] {
            let wrong = client.call_tool(call("count", arguments)).await.unwrap();
            assert_eq!(wrong.is_error, Some(true));
            assert!(texts(&wrong)[0].contains(words), "{wrong:?}");
        }
        let unknown = client.call_tool(call("guess", json!({}))).await.unwrap_err();
        assert!(
            matches!(&unknown, ServiceError::McpError(error) if error.message.contains("there are count")),
            "{unknown:?}"
        );
        client.cancel().await.unwrap();
        served.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn more_calls_than_may_wait_are_refused_at_once_and_the_end_ends_all() {
        let stop = CancellationToken::new();
        let (client, served) = client(&stop).await;
        let all = (0..=MAX_RUNNING + MAX_WAITING).map(|_| {
            let peer = client.peer().clone();
            tokio::spawn(async move { peer.call_tool(call("count", json!({"count": 0}))).await })
        });
        let all: Vec<_> = all.collect();
        let mut busy = None;
        while busy.is_none() {
            tokio::time::sleep(Duration::from_millis(10)).await;
            busy = all.iter().position(tokio::task::JoinHandle::is_finished);
        }
        let mut all = all;
        let refused = all.swap_remove(busy.unwrap()).await.unwrap().unwrap();
        assert!(texts(&refused)[0].contains("ask again"), "{refused:?}");
        assert!(!all.iter().any(tokio::task::JoinHandle::is_finished));
        stop.cancel();
        served.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_client_that_goes_before_it_says_anything_is_no_error() {
        let stop = CancellationToken::new();
        let served = serve_on(Counting, tokio::io::empty(), tokio::io::sink(), stop).await;
        assert!(served.is_ok(), "{served:?}");
    }
}
