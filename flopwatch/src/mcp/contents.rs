//! What a capture holds, and what the catalogue has for it.

use flopwatch_analysis::catalogue::CATALOGUE;
use flopwatch_analysis::{Definition, InputCount, Listing, Part, Request, RequestError, ResultType, Subject};
use flopwatch_mcp::Search;
use flopwatch_model::{Category, Loss, Source};
use flopwatch_summary::{GpuBusy, ProfiledCount, Summary};
use flopwatch_trace::Format;
use serde::Serialize;
use serde_json::Value;

use super::library::OpenCapture;

/// What a capture holds.
#[derive(Debug, Serialize)]
pub(super) struct Contents<'a> {
    file: &'a str,
    format: Option<&'static str>,
    session_id: &'a str,
    /// The profiler and its versions.
    source: &'a Source,
    window_ns: u64,
    events_span_ns: u64,
    session_start_utc_ns: Option<u64>,
    total_events: u64,
    /// Events by category, of those that were captured.
    categories: Vec<CategoryEvents>,
    /// Categories that were not captured, which is not the same as no events.
    not_captured: Vec<&'static str>,
    /// What it holds beside events.
    beside_events: Vec<&'static str>,
    gpus: &'a [GpuBusy],
    /// Launches that a kernel profiler measured.
    profiled: ProfiledCount,
    /// What was dropped, truncated, skipped or is unsupported.
    drops: &'a [Loss],
    /// Secrets that were replaced in names.
    redactions: u64,
    /// Analyses of one capture that have something to tell of it.
    analyses: Vec<&'static str>,
}

#[derive(Debug, Serialize)]
struct CategoryEvents {
    category: &'static str,
    events: u64,
}

impl<'a> Contents<'a> {
    pub(super) fn of(capture: &'a OpenCapture) -> Self {
        let summary: &Summary = &capture.summary;
        let counts = summary.categories.iter();
        let categories = counts.clone().filter_map(|count| {
            Some(CategoryEvents {
                category: count.category.name(),
                events: count.events?,
            })
        });
        let lacking = counts.filter(|count| !count.captured);
        let held = Held::of(capture);
        let analyses = CATALOGUE.iter().filter(|definition| {
            definition.inputs == InputCount::One && is_for_reading(definition) && held.lacks(definition).is_none()
        });
        Self {
            file: &capture.name,
            format: capture.format.map(Format::about),
            session_id: &summary.session_id,
            source: &summary.source,
            window_ns: summary.window_ns,
            events_span_ns: summary.events_span_ns,
            session_start_utc_ns: summary.session_start_utc_ns,
            total_events: summary.total_events,
            categories: categories.collect(),
            not_captured: lacking.map(|count| count.category.name()).collect(),
            beside_events: capture.parts.iter().map(|part| part.label()).collect(),
            gpus: &summary.gpus,
            profiled: summary.profiled,
            drops: &summary.drops,
            redactions: summary.redactions,
            analyses: analyses.map(|definition| definition.name).collect(),
        }
    }
}

/// Whether the result is for whoever asks, and not a file for another program.
fn is_for_reading(definition: &Definition) -> bool {
    matches!(definition.result, ResultType::Json { .. })
}

/// What a capture has for analyses.
#[derive(Debug)]
pub(super) struct Held {
    categories: Vec<Category>,
    parts: Vec<Part>,
}

impl Held {
    pub(super) fn of(capture: &OpenCapture) -> Self {
        Self {
            categories: capture.categories(),
            parts: capture.parts.clone(),
        }
    }

    /// What the capture would have to hold for the analysis to tell something; `None` if it does.
    fn lacks(&self, definition: &Definition) -> Option<String> {
        let subject = Subject::of(definition);
        (!subject.is_in(&self.categories, &self.parts)).then(|| subject.words())
    }
}

/// The catalogue, or what a search finds of it.
#[derive(Debug, Serialize)]
pub(super) struct CatalogueListing {
    /// The analyses, of a capture those that have something to tell.
    analyses: Vec<CatalogueEntry>,
    /// Of a capture those that have nothing to tell, with what it would have to hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    nothing_to_tell: Vec<LackingEntry>,
}

#[derive(Debug, Serialize)]
struct CatalogueEntry {
    name: &'static str,
    about: &'static str,
    /// The question that it answers.
    question: &'static str,
    inputs: InputCount,
    /// Names of its parameters, whose schemas `names` asks for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parameters: Vec<String>,
    /// Media type of a result that is a file for another program.
    #[serde(skip_serializing_if = "Option::is_none")]
    file_for_another_program: Option<&'static str>,
}

#[derive(Debug, Serialize)]
struct LackingEntry {
    name: &'static str,
    needs: String,
}

impl CatalogueListing {
    /// The entries that have every word of `search`, in published order.
    pub(super) fn of(search: &str, held: Option<&Held>) -> Self {
        let search = Search::of(search);
        let mut listing = Self {
            analyses: Vec::new(),
            nothing_to_tell: Vec::new(),
        };
        for definition in CATALOGUE {
            let name = definition.name;
            if !search.finds(&[name, definition.title, definition.about, definition.group.question()]) {
                continue;
            }
            match held.and_then(|held| held.lacks(definition)) {
                Some(needs) => listing.nothing_to_tell.push(LackingEntry { name, needs }),
                None => listing.analyses.push(CatalogueEntry::of(definition)),
            }
        }
        listing
    }
}

impl CatalogueEntry {
    fn of(definition: &Definition) -> Self {
        Self {
            name: definition.name,
            about: definition.about,
            question: definition.group.question(),
            inputs: definition.inputs,
            parameters: definition
                .parameter_schemas()
                .into_iter()
                .map(|(name, _)| name)
                .collect(),
            file_for_another_program: (!is_for_reading(definition)).then(|| definition.media_type()),
        }
    }
}

/// The entries of these names whole, with the schemas of their parameters and results.
pub(super) fn entries(names: &[String]) -> Result<Vec<Listing>, RequestError> {
    let entry = |name: &String| Request::parse(name, &Value::Null).map(|request| Listing::of(request.definition()));
    names.iter().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(listing: &CatalogueListing) -> Vec<&str> {
        listing.analyses.iter().map(|entry| entry.name).collect()
    }

    #[test]
    fn of_a_capture_the_catalogue_tells_what_has_nothing_to_tell_and_why() {
        let held = Held {
            categories: vec![Category::NvtxRange],
            parts: Vec::new(),
        };
        let listing = CatalogueListing::of("", Some(&held));
        assert!(names(&listing).contains(&"advice") && names(&listing).contains(&"nvtx_sum"));
        let roofline = listing.nothing_to_tell.iter().find(|entry| entry.name == "roofline");
        assert_eq!(roofline.unwrap().needs, "launches that Nsight Compute measured");
        assert_eq!(names(&CatalogueListing::of("", None)).len(), CATALOGUE.len());
    }

    #[test]
    fn a_search_has_every_word_somewhere() {
        let found = CatalogueListing::of("IDLE gpu", None);
        assert!(names(&found).contains(&"idle"), "{found:?}");
        assert!(names(&CatalogueListing::of("no such words", None)).is_empty());
    }

    #[test]
    fn an_entry_has_the_schemas_of_its_parameters() {
        let found = entries(&["events".to_owned()]).unwrap();
        assert_eq!(found[0].parameters["properties"]["limit"]["maximum"], 100_000);
        let error = entries(&["event".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("did you mean events or"), "{error}");
    }
}
