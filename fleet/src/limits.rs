//! How much of a file is read.

/// Bounds of what is read of one file. The memory that a read takes is bounded by their sum, times a small number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the file.
    pub file_bytes: usize,
    /// Rows of the file.
    pub rows: usize,
    /// Bytes of one text.
    pub text_bytes: usize,
    /// Elements of the lists of one column, all rows together.
    pub elements: usize,
    /// Bytes of all texts of all rows, and of all pages once they are inflated, each.
    pub inflated_bytes: usize,
}

impl Default for Limits {
    /// A file of a capture with a hundred thousand names.
    fn default() -> Self {
        Self {
            file_bytes: 16 << 20,
            rows: 100_000,
            text_bytes: 4_096,
            elements: 4_000_000,
            inflated_bytes: 128 << 20,
        }
    }
}
