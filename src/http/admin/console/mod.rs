//! The pages of the console: each handler makes the document of its page, which a template of [`crate::console`] shows.

pub(super) mod audit;
pub(super) mod callbacks;
pub(super) mod explain;
pub(super) mod merchants;
pub(super) mod operations;
pub(super) mod overview;
pub(super) mod requests;
pub(super) mod rules;
#[cfg(test)]
mod tests;
