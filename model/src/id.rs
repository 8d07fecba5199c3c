//! What the ids of the model have in common: each is the index of an element of a list, in 32 bits.

/// Declares the id of an element of a list.
macro_rules! id {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, bytemuck::Zeroable, bytemuck::Pod)]
        #[repr(transparent)]
        pub struct $name(u32);

        impl $name {
            /// The id of the element at index `number`.
            pub const fn new(number: u32) -> Self {
                Self(number)
            }

            /// The id of the element at index `at`; `None` where 32 bits do not hold it.
            pub fn from_index(at: usize) -> Option<Self> {
                u32::try_from(at).ok().map(Self)
            }

            /// The index as files and results have it.
            pub const fn number(self) -> u32 {
                self.0
            }

            /// The index of the element in its list.
            pub fn index(self) -> usize {
                $crate::index(self.0)
            }

            /// The ids of the elements of a list, from the first on.
            pub fn all() -> impl Iterator<Item = Self> + Clone {
                (0_u32..).map(Self)
            }

            /// Ids as numbers, in place.
            pub fn numbers(ids: &[Self]) -> &[u32] {
                bytemuck::cast_slice(ids)
            }

            /// Ids as numbers, in the memory that they have.
            pub fn into_numbers(ids: Vec<Self>) -> Vec<u32> {
                ids.into_iter().map(Self::number).collect()
            }

            /// Numbers as ids, in the memory that they have.
            pub fn from_numbers(numbers: Vec<u32>) -> Vec<Self> {
                numbers.into_iter().map(Self).collect()
            }
        }

        impl From<$name> for u32 {
            fn from(id: $name) -> Self {
                id.number()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

pub(crate) use id;
