//! Session controller and admission of Flopwatch.
