//! The command line (contract section 12).

pub mod translate;
