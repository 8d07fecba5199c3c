//! The id of an event, and columns of ids of which some are none.

use crate::id::id;

id! {
    /// Index of an event among the [`Events`](crate::Events) of its category.
    EventId
}

/// A column of events of one category, each of which may be none, in 32 bits each.
///
/// ```
/// use flopwatch_model::{EventId, EventLinks};
///
/// let mut around = EventLinks::none(2);
/// around.set(1, EventId::new(0));
/// assert_eq!(around.get(0), None);
/// assert_eq!(around.get(1), Some(EventId::new(0)));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventLinks(Vec<EventId>);

impl EventLinks {
    /// Stands for no event: a category has fewer.
    const NONE: EventId = EventId(u32::MAX);

    /// A column of `count` elements without an event.
    pub fn none(count: usize) -> Self {
        Self(vec![Self::NONE; count])
    }

    /// How many elements the column has.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the column has no element.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The event of the element at `at`; `None` for none, and behind the end.
    pub fn get(&self, at: usize) -> Option<EventId> {
        self.0.get(at).copied().filter(|event| *event != Self::NONE)
    }

    /// Makes `event` that of the element at `at`, where there is such an element.
    pub fn set(&mut self, at: usize, event: EventId) {
        if let Some(slot) = self.0.get_mut(at) {
            *slot = event;
        }
    }

    /// The events of all elements.
    pub fn iter(&self) -> impl Iterator<Item = Option<EventId>> {
        self.0
            .iter()
            .map(|event| Some(*event).filter(|event| *event != Self::NONE))
    }

    /// The elements, for loops that fill one after the other.
    pub(crate) fn slots(&mut self) -> &mut [EventId] {
        &mut self.0
    }
}

impl FromIterator<Option<EventId>> for EventLinks {
    fn from_iter<I: IntoIterator<Item = Option<EventId>>>(events: I) -> Self {
        Self(events.into_iter().map(|event| event.unwrap_or(Self::NONE)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_without_an_event_is_none() {
        let mut links: EventLinks = [None, Some(EventId::new(7))].into_iter().collect();
        assert_eq!(
            (links.len(), links.get(0), links.get(1)),
            (2, None, Some(EventId::new(7)))
        );
        assert_eq!(links.get(2), None, "behind the end");
        links.set(0, EventId::new(3));
        links.set(2, EventId::new(4));
        let all: Vec<Option<u32>> = links.iter().map(|event| event.map(EventId::number)).collect();
        assert_eq!(all, [Some(3), Some(7)]);
        assert_eq!(EventLinks::none(2).iter().flatten().count(), 0);
    }
}
