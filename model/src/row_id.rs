//! The id of a row.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use crate::id::id;

id! {
    /// Index of a row in [`Capture::rows`](crate::Capture::rows).
    #[derive(Serialize, Deserialize)]
    #[serde(transparent)]
    RowId
}

/// A number, in results.
impl JsonSchema for RowId {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        u32::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        u32::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        u32::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_the_index_of_its_row() {
        assert_eq!(RowId::from_index(7), Some(RowId::new(7)));
        assert_eq!(RowId::new(7).index(), 7);
        assert_eq!(RowId::default().index(), 0);
        let last = crate::index(u32::MAX);
        assert_eq!(RowId::from_index(last).map(RowId::number), Some(u32::MAX));
        assert_eq!(last.checked_add(1).and_then(RowId::from_index), None);
    }

    #[test]
    fn ids_are_numbers_in_columns() {
        let ids: Vec<RowId> = RowId::all().take(3).collect();
        assert_eq!(RowId::numbers(&ids), [0, 1, 2]);
        let before = ids.as_ptr().cast::<u32>();
        let numbers = RowId::into_numbers(ids.clone());
        assert_eq!(numbers, [0, 1, 2]);
        assert_eq!(RowId::from_numbers(numbers), ids);
        let moved = RowId::into_numbers(ids);
        assert_eq!(moved.as_ptr(), before, "copied");
    }

    #[test]
    fn an_id_is_a_number_in_results_and_their_schema() {
        assert_eq!(RowId::new(4).to_string(), "4");
        assert_eq!(serde_json::to_string(&RowId::new(4)).unwrap(), "4");
        assert_eq!(serde_json::from_str::<RowId>("4").unwrap(), RowId::new(4));
        assert_eq!(schemars::schema_for!(RowId), schemars::schema_for!(u32));
        assert_eq!(schemars::schema_for!(Vec<RowId>), schemars::schema_for!(Vec<u32>));
    }
}
