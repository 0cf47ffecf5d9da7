//! What a proof of the store's invariants says (contract section 12, `store check`).

/// What an audit looked at and found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Audit {
    /// How many operations were looked at.
    pub operations: u64,
    /// How many entries of the ledger were looked at.
    pub entries: u64,
    /// How many entries of the journal were looked at.
    pub journal: u64,
    /// How many callbacks were looked at.
    pub callbacks: u64,
    /// What is wrong, a line each; the first [`Audit::MAX_PROBLEMS`]. No account number and nothing of `fields` is in them.
    pub problems: Vec<String>,
    /// How many things are wrong.
    pub problem_count: u64,
}

impl Audit {
    /// The most problems that are told one by one.
    pub const MAX_PROBLEMS: usize = 100;

    /// Whether everything is as it must be.
    #[must_use]
    pub const fn is_clean(&self) -> bool {
        self.problem_count == 0
    }

    /// Takes note of a problem.
    pub(super) fn problem(&mut self, text: String) {
        self.problem_count += 1;
        if self.problems.len() < Self::MAX_PROBLEMS {
            self.problems.push(text);
        }
    }
}

/// How far an audit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditProgress {
    /// Operations, entries of the journal and callbacks looked at.
    pub done: u64,
    /// Operations, entries of the journal and callbacks in all.
    pub total: u64,
}
