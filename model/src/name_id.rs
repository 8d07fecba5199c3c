//! The id of a name.

use crate::id::id;

id! {
    /// Index of a name in [`Events::names`](crate::Events::names) of the same category.
    NameId
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_the_index_of_its_name() {
        assert_eq!(NameId::from_index(7), Some(NameId::new(7)));
        assert_eq!(NameId::new(7).index(), 7);
        assert_eq!(u32::from(NameId::new(7)), 7);
        assert_eq!(NameId::from_numbers(vec![1, 0]), [NameId::new(1), NameId::new(0)]);
    }
}
