//! A customer's request for a page, the response to it, and the deposit that it is about.

use std::sync::Arc;
use std::time::Duration;

use super::decision::Decision;
use crate::auth::signatures::{self, Link, LinkRefused};
use crate::domain::{
    Amount, BrowserUrl, Currency, Deposit, Instructions, Kind, MerchantId, Operation, OrderId, RedirectUrl, Status,
    TransactionId, UnixMillis,
};
use crate::engine::{Engine, NextAction};
use crate::error::{AdmissionError, ApiError};
use crate::rules::{PageState, RuleSet};

/// How often the preparing page reloads, in seconds.
pub(super) const PREPARING_SECONDS: u64 = 2;
/// How often the page that waits for a result reloads, in seconds.
pub(super) const STOPPED_SECONDS: u64 = 15;
/// How long a result is shown before the page goes to the return link, in seconds. Browsers replace the page in their
/// history if the next one follows within a second, so that going back from the merchant does not send the form again.
pub(super) const FINISHED_SECONDS: u64 = 1;

/// The kinds of signed links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkKind {
    /// `/pay/`: the page to which the merchant sends its customer.
    Entry,
    /// `/return/`: back to the merchant.
    Return,
    /// `/sandbox/`: the sandbox's hosted page.
    Sandbox,
}

impl LinkKind {
    /// Returns the first segment of its path.
    #[must_use]
    pub const fn segment(self) -> &'static str {
        match self {
            Self::Entry => signatures::ENTRY,
            Self::Return => signatures::RETURN,
            Self::Sandbox => signatures::SANDBOX,
        }
    }
}

/// A request for a page, by a verified link.
#[derive(Debug)]
pub struct PageRequest {
    /// The kind of the link.
    pub kind: LinkKind,
    /// The content of the link.
    pub link: Link,
    /// The path and query as sent.
    pub target: RedirectUrl,
    /// The time of the request.
    pub now: UnixMillis,
    /// The decision made on the sandbox's page, if any.
    pub decision: Option<Decision>,
    /// The rules of the request.
    pub rules: Arc<RuleSet>,
}

impl PageRequest {
    /// Verifies a link. `target` is the path and query exactly as received.
    ///
    /// # Errors
    /// [`AdmissionError::Link`]: the link was not issued, was altered, or has expired.
    pub fn verified(
        engine: &Engine,
        rules: &Arc<RuleSet>,
        kind: LinkKind,
        target: &str,
        now: UnixMillis,
    ) -> Result<Self, AdmissionError> {
        let link =
            engine.verify_link(&rules.gateway, kind.segment(), target, now).map_err(|refused| match refused {
                LinkRefused::NotIssued => AdmissionError::Link(None),
                LinkRefused::Expired(id) => AdmissionError::Link(Some(id.digits().as_str().into())),
            })?;
        Ok(Self {
            kind,
            link,
            target: RedirectUrl::new(target.to_owned()),
            now,
            decision: None,
            rules: Arc::clone(rules),
        })
    }
}

/// The answer to a page request, with the deposit's merchant.
#[derive(Debug)]
pub struct PageReply {
    /// The merchant that created the deposit.
    pub merchant: MerchantId,
    /// The deposit's id.
    pub transaction_id: TransactionId,
    /// The answer.
    pub step: PageResponse,
}

/// The answer to the customer's browser.
#[derive(Debug)]
pub enum PageResponse {
    /// A redirect to the merchant's own page, or to the provider's.
    Away(BrowserUrl),
    /// A redirect to another of the gateway's links.
    Link(RedirectUrl),
    /// A page of the gateway.
    Page(Box<HtmlPage>),
}

impl PageResponse {
    /// Returns its name in metrics.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Away(_) => "away",
            Self::Link(_) => "link",
            Self::Page(page) => page.state.as_str(),
        }
    }
}

/// A page, before a language is chosen for it.
#[derive(Debug)]
pub struct HtmlPage {
    /// The state that it shows.
    pub state: PageState,
    /// The deposit; `None` if the page may not show one.
    pub payment: Option<Payment>,
    /// How the customer has to pay.
    pub instructions: Option<Instructions>,
    /// The signed return link, if the page offers it.
    pub return_url: Option<RedirectUrl>,
    /// The path and query to which the sandbox's form is sent.
    pub action: Option<RedirectUrl>,
    /// The path and query of the page itself, if it offers a reload.
    pub here: Option<RedirectUrl>,
    /// When the page reloads or redirects by itself.
    pub refresh: Option<Refresh>,
    /// Whether it answers a decision that contradicts the operation's result.
    pub contradicts: bool,
}

impl HtmlPage {
    /// Creates a page without a deposit.
    #[must_use]
    pub const fn of(state: PageState) -> Self {
        Self {
            state,
            payment: None,
            instructions: None,
            return_url: None,
            action: None,
            here: None,
            refresh: None,
            contradicts: false,
        }
    }
}

/// What pages show of a deposit.
#[derive(Debug)]
pub struct Payment {
    pub(super) merchant: Box<str>,
    pub(super) shop: Box<str>,
    pub(super) order_id: OrderId,
    pub(super) amount: Amount,
    pub(super) currency: Currency,
}

/// An automatic reload of a page, or redirect to another one.
#[derive(Debug)]
pub struct Refresh {
    /// The delay, in whole seconds.
    pub after: Duration,
    /// The target; `None`: the same page.
    pub to: Option<RedirectUrl>,
}

impl Refresh {
    /// Creates a reload of the same page.
    #[must_use]
    pub const fn again(seconds: u64) -> Self {
        Self { after: Duration::from_secs(seconds), to: None }
    }
}

/// A deposit with the data that its pages need.
pub(super) struct DepositPage {
    pub(super) operation: Operation,
    pub(super) deposit: Deposit,
    pub(super) payment: Payment,
    pub(super) return_url: Option<RedirectUrl>,
}

impl DepositPage {
    /// Returns `None` for a withdrawal.
    pub(super) fn new(engine: &Engine, request: &PageRequest, operation: Operation) -> Option<Self> {
        let Kind::Deposit(deposit) = operation.kind.clone() else { return None };
        let PageRequest { rules, .. } = request;
        // A merchant or shop that was removed from the rules is shown by its id.
        let merchant = rules.merchants.get(&operation.merchant).map(|merchant| merchant.name.clone());
        let shop = rules.shops.get(&operation.shop);
        let payment = Payment {
            merchant: merchant.unwrap_or_else(|| operation.merchant.as_str().into()),
            shop: shop.map_or_else(|| operation.shop.as_str().into(), |shop| shop.name.clone()),
            order_id: operation.order_id.clone(),
            amount: operation.amount,
            currency: operation.currency,
        };
        // After `return_lifetime` was shortened, it may be over while the customer is still paying.
        let is_open = request.now < operation.created_at.plus(rules.gateway.pages.return_lifetime);
        let offers_return = is_open && shop.is_none_or(|shop| shop.payin.browser_return);
        let (id, created_at) = (operation.id, operation.created_at);
        let return_url = offers_return.then(|| engine.return_link(&rules.gateway, id, created_at));
        Some(Self { operation, deposit, payment, return_url })
    }

    /// Returns the redirect for a deposit of this status, byte for byte as the merchant specified it (promises
    /// P098 to P101).
    pub(super) fn destination(&self, status: Status) -> PageResponse {
        let Deposit { success_url, pending_url, fail_url, .. } = &self.deposit;
        let destination = match status {
            Status::Success => success_url,
            Status::Pending => pending_url,
            Status::Failed => fail_url,
        };
        PageResponse::Away(destination.clone())
    }

    pub(super) async fn next_action(&self, engine: &Engine, rules: &RuleSet) -> Result<NextAction, ApiError> {
        let provider = rules.shops.get(&self.operation.shop).map(|shop| &shop.provider);
        Ok(engine.next_action(&self.operation, provider).await?)
    }

    /// Builds a page that reloads by itself, and by hand, as long as its link is valid. Before the link expires, the
    /// page goes to the return link, if there is one, instead of reloading.
    pub(super) fn waiting(self, state: PageState, request: &PageRequest, seconds: u64) -> HtmlPage {
        let page = self.page(state);
        let left = request.link.expires.saturating_sub(request.now.seconds());
        if left > i64::try_from(seconds).unwrap_or(i64::MAX) {
            return HtmlPage { refresh: Some(Refresh::again(seconds)), here: Some(request.target.clone()), ..page };
        }
        let refresh = page.return_url.clone().map(|to| Refresh { to: Some(to), ..Refresh::again(seconds) });
        HtmlPage { refresh, ..page }
    }

    pub(super) fn page(self, state: PageState) -> HtmlPage {
        HtmlPage { payment: Some(self.payment), return_url: self.return_url, ..HtmlPage::of(state) }
    }
}
