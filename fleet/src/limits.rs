//! How much of a file is read.

/// Bounds of what is read of one file. The memory that a read takes is bounded by their sum, times
/// a small number.
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
    /// As much as a capture of many devices and names takes; files are written within the same.
    fn default() -> Self {
        Self {
            file_bytes: 8 << 20,
            rows: 50_000,
            text_bytes: 4_096,
            elements: 1_000_000,
            inflated_bytes: 32 << 20,
        }
    }
}
