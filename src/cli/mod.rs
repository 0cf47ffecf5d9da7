//! The command line (contract section 12).

pub mod check;
pub mod translate;
