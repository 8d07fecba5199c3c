//! A timeline file at the gateway, of which those parts are read that somebody asks for.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use flopwatch_cli::fetch::Sparse;
use flopwatch_model::{Category, Needs, Selection, Timeline};
use flopwatch_trace::ReadLimits;
use flopwatch_trace::timeline_file::{Layout, OpenError, read_for};
use pyo3::prelude::*;
use rayon::ThreadPool;

use super::call::Call;
use super::failure::Failure;
use super::file::{RemoteFile, bring};
use super::reach::Reach;
use crate::table::Table;
use crate::{capture, events, work};

/// What is read first, in which the structure of most files begins.
pub(super) const FIRST_READ_BYTES: u64 = 128 << 10;

/// A capture of which the structure and the rows are here.
#[pyclass(frozen, module = "flopwatch._native")]
pub(crate) struct RemoteCapture {
    source: Source,
    layout: Layout,
    /// Without events.
    timeline: Timeline,
}

/// Where the bytes come from.
#[derive(Clone)]
struct Source {
    reach: Arc<Reach>,
    sparse: Arc<Sparse>,
}

/// Threads of this process: those of a parent are not kept.
type Pool = Arc<ThreadPool>;

impl Source {
    async fn bring(&self, parts: Vec<Range<u64>>) -> Result<(), Failure> {
        bring(&self.reach, &self.sparse, parts).await
    }

    /// Has the engine look at what is here of the file.
    async fn look<T: Send + 'static>(
        &self,
        pool: &Pool,
        look: impl FnOnce(&Sparse) -> Result<T, OpenError> + Send + 'static,
    ) -> Result<T, Failure> {
        let (pool, sparse) = (Arc::clone(pool), Arc::clone(&self.sparse));
        let looked = tokio::task::spawn_blocking(move || {
            let looked = pool.install(|| look(&sparse));
            looked.map_err(|error| read_failure(&sparse, &error.to_string()))
        });
        let looked = looked.await;
        looked.unwrap_or_else(|error| Err(Failure::Work(error.to_string())))
    }

    async fn read(&self, pool: &Pool, needs: Needs) -> Result<Timeline, Failure> {
        let read = move |sparse: &Sparse| read_for(sparse.path(), &ReadLimits::default(), &needs);
        self.look(pool, read).await.map(|part| part.timeline)
    }

    /// Brings the structure, wherever it lies: what is there of it says where it is not.
    async fn layout(&self, pool: &Pool) -> Result<Layout, Failure> {
        let size = self.sparse.size();
        let mut step = FIRST_READ_BYTES;
        loop {
            let found = self.look(pool, |sparse| Layout::of(sparse.path())).await;
            let known = match &found {
                Ok(layout) if layout.is_whole => return found,
                Ok(layout) => layout.rest(size),
                Err(_) => Layout::default().rest(size),
            };
            let missing = self.sparse.missing(&known);
            if missing.is_empty() {
                let damaged = || read_failure(&self.sparse, "its structure is damaged");
                return found.and_then(|_part| Err(damaged()));
            }
            let begin = |gap: Range<u64>| gap.start..gap.end.min(gap.start.saturating_add(step));
            self.bring(missing.into_iter().map(begin).collect()).await?;
            step = step.saturating_mul(2);
        }
    }
}

/// The sentence with the file that the user knows.
fn read_failure(sparse: &Sparse, text: &str) -> Failure {
    let place = sparse.address();
    let path = format!("{}: ", sparse.path().display());
    let text = text.strip_prefix(&path).unwrap_or(text);
    Failure::Read(format!("{} of session {}: {text}", place.name(), place.session()))
}

impl RemoteCapture {
    pub(super) async fn open(reach: Arc<Reach>, sparse: Sparse, pool: Pool) -> Result<Self, Failure> {
        let source = Source {
            reach,
            sparse: Arc::new(sparse),
        };
        let layout = source.layout(&pool).await?;
        source.bring(layout.rest(source.sparse.size())).await?;
        let needs = Needs::NOTHING.rows();
        let timeline = source.read(&pool, needs).await?;
        Ok(Self {
            source,
            layout,
            timeline,
        })
    }
}

#[pymethods]
impl RemoteCapture {
    /// The session that the file names.
    #[getter]
    fn session_id(&self) -> &str {
        &self.timeline.session_id
    }

    /// Length of the window in ns.
    #[getter]
    fn duration_ns(&self) -> u64 {
        self.timeline.capture.duration_ns
    }

    /// Events by category, of those that were captured.
    #[getter]
    fn categories(&self) -> BTreeMap<&'static str, usize> {
        let categories = self.layout.categories.iter();
        categories
            .map(|(category, columns)| (category.name(), columns.events))
            .collect()
    }

    /// Name of the capture's file and of its session.
    #[getter]
    fn path(&self) -> String {
        let place = self.source.sparse.address();
        format!("{} of session {}", place.name(), place.session())
    }

    /// Name of its session.
    #[getter]
    fn session(&self) -> &str {
        self.source.sparse.address().session()
    }

    /// Name of the capture.
    #[getter]
    fn capture(&self) -> String {
        self.source.sparse.address().capture().capture.unwrap_or_default()
    }

    /// Its timeline file, of which what was read here is there.
    fn file(&self) -> RemoteFile {
        RemoteFile::new(Arc::clone(&self.source.reach), Arc::clone(&self.source.sparse))
    }

    /// Size of the file in bytes.
    #[getter]
    fn size(&self) -> u64 {
        self.source.sparse.size()
    }

    /// How many bytes of it came so far.
    #[getter]
    fn moved(&self) -> u64 {
        self.source.sparse.downloaded_bytes()
    }

    /// The rows that events lie on: streams and threads.
    fn rows(&self) -> PyResult<Table> {
        Table::of(events::rows(&self.timeline))
    }

    /// The events of a category as a table.
    fn events(&self, category: &str) -> PyResult<Call> {
        let known = capture::category(category, |known| self.layout.categories.contains_key(known))?;
        let columns = self.layout.categories.get(&known);
        let parts = columns.map(|columns| columns.bytes.clone()).unwrap_or_default();
        let (source, pool) = (self.source.clone(), work::pool()?);
        Call::begin(|_reporter| async move {
            source.bring(parts).await?;
            let timeline = Arc::new(source.read(&pool, needs_of(known)).await?);
            let made = events::of(&timeline, known);
            made.map(Table::new).map_err(|error| Failure::Work(error.to_string()))
        })
    }

    /// Runs an analysis at the gateway.
    #[pyo3(signature = (name, parameters, format = None))]
    fn analyze(&self, name: &str, parameters: &str, format: Option<&str>) -> PyResult<Call> {
        let request = super::analysis::CheckedRequest::new(name, parameters, format)?;
        let (reach, place) = (Arc::clone(&self.source.reach), self.source.sparse.address().capture());
        Call::begin(|_reporter| async move { request.of(&reach, &place, &[]).await })
    }
}

/// All that a table of the events has.
fn needs_of(category: Category) -> Needs {
    let at = Category::ALL.iter().position(|known| *known == category);
    let alone = at.and_then(|at| Category::ALL.get(at..=at)).unwrap_or_default();
    Needs {
        categories: Selection::Only(alone),
        counters: false,
        allocations: false,
        programs: false,
        profiles: false,
        stacks: false,
        call_stacks: false,
        ..Needs::EVERYTHING
    }
}
