//! Why operations FAILED, and what PENDING ones wait for (contract section 14).

/// Why an operation FAILED. Merchants see FAILED and no cause (promise P148).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureCause {
    /// The provider refused it.
    Provider,
    /// The shop refuses the customer's address.
    RefusedAddress,
    /// The shop refuses the customer's account id.
    RefusedAccount,
    /// The customer's daily limit is exceeded.
    DailyLimit,
    /// The available balance does not cover it.
    Balance,
    /// An operator resolved it.
    Operator,
}

impl FailureCause {
    /// All causes.
    pub const ALL: [Self; 6] =
        [Self::Provider, Self::RefusedAddress, Self::RefusedAccount, Self::DailyLimit, Self::Balance, Self::Operator];

    /// Returns the name in the API, in logs and in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Provider => "provider",
            Self::RefusedAddress => "refused_address",
            Self::RefusedAccount => "refused_account",
            Self::DailyLimit => "daily_limit",
            Self::Balance => "balance",
            Self::Operator => "operator",
        }
    }
}

/// A provider's own words about a failure, for operators alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProviderReason {
    /// Its code.
    pub code: Option<Box<str>>,
    /// Its text.
    pub text: Option<Box<str>>,
}

impl ProviderReason {
    /// The most characters of a code.
    pub const MAX_CODE: usize = 64;
    /// The most characters of a text.
    pub const MAX_TEXT: usize = 300;
}

/// What a PENDING operation waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WaitsFor {
    /// The customer, to pay.
    Customer,
    /// The provider's answer to a request.
    ProviderAnswer,
    /// A report that the provider sends by itself.
    ProviderReport,
    /// Another operator, to confirm a resolution.
    Confirmation,
    /// An operator: the provider was given up.
    Operator,
}

impl WaitsFor {
    /// Returns the name in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Customer => "customer",
            Self::ProviderAnswer => "provider_answer",
            Self::ProviderReport => "provider_report",
            Self::Confirmation => "confirmation",
            Self::Operator => "operator",
        }
    }
}
