//! Flopwatch's custom resources, conditions, labels and validation.
