//! A customer's request for a page, the response to it, and the deposit that it is about.

use std::sync::Arc;
use std::time::Duration;

use super::decision::Decision;
use crate::auth::links::{self, Link};
use crate::domain::{
    Amount, BrowserUrl, Currency, Deposit, Instructions, Kind, MerchantId, Operation, OrderId, RedirectUrl, Status,
    UnixMillis,
};
use crate::engine::{Engine, NextAction};
use crate::error::{AdmissionError, ApiError};
use crate::rules::{PageState, RuleSet};

/// How often the preparing page comes again, in seconds.
pub(super) const PREPARING_SECONDS: u64 = 2;
/// How often the page comes again that waits for a result.
pub(super) const STOPPED_SECONDS: u64 = 15;
/// How long a result stands before the page goes on to the return link. Browsers put what comes after a second at most in
/// the page's place in their history, so that going back from the merchant does not send the form again.
pub(super) const FINISHED_SECONDS: u64 = 1;

/// The kinds of signed links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkKind {
    /// `/pay/`: where the merchant sends its customer.
    Entry,
    /// `/return/`: back to the merchant.
    Return,
    /// `/sandbox/`: the sandbox's hosted page.
    Sandbox,
}

impl LinkKind {
    /// The first segment of its path.
    #[must_use]
    pub const fn segment(self) -> &'static str {
        match self {
            Self::Entry => links::ENTRY,
            Self::Return => links::RETURN,
            Self::Sandbox => links::SANDBOX,
        }
    }
}

/// What a browser asks for, by a link that was verified.
#[derive(Debug)]
pub struct PageRequest {
    /// Which kind of link.
    pub kind: LinkKind,
    /// What it says.
    pub link: Link,
    /// Path and query as sent.
    pub target: RedirectUrl,
    /// When it was asked.
    pub now: UnixMillis,
    /// What was chosen on the sandbox's page.
    pub decision: Option<Decision>,
    /// The rules of the request.
    pub rules: Arc<RuleSet>,
}

impl PageRequest {
    /// Verifies a link. `target` is the path and query exactly as received.
    ///
    /// # Errors
    /// [`AdmissionError::Link`]: it was not issued like this, was altered, or is too late.
    pub fn verified(
        engine: &Engine,
        rules: &Arc<RuleSet>,
        kind: LinkKind,
        target: &str,
        now: UnixMillis,
    ) -> Result<Self, AdmissionError> {
        let link =
            engine.links().verify(&rules.gateway, kind.segment(), target, now).map_err(|_| AdmissionError::Link)?;
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

/// What a browser is answered, and about whose deposit.
#[derive(Debug)]
pub struct PageReply {
    /// Who created the deposit.
    pub merchant: MerchantId,
    /// How it goes on.
    pub step: PageResponse,
}

/// How the customer goes on.
#[derive(Debug)]
pub enum PageResponse {
    /// To the merchant's own page, or to the provider's.
    Away(BrowserUrl),
    /// To another of our links.
    Link(RedirectUrl),
    /// To a page of ours.
    Page(Box<HtmlPage>),
}

impl PageResponse {
    /// Its name in metrics.
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
    /// What it is about.
    pub state: PageState,
    /// The deposit; `None` when nothing may be told of one.
    pub payment: Option<Payment>,
    /// What the customer has to do.
    pub instructions: Option<Instructions>,
    /// The signed return link, where pages offer it.
    pub return_url: Option<RedirectUrl>,
    /// Where the sandbox's form goes: path and query.
    pub action: Option<RedirectUrl>,
    /// Path and query of the page itself, where asking once more helps.
    pub here: Option<RedirectUrl>,
    /// When it comes again or goes on by itself.
    pub refresh: Option<Refresh>,
    /// Whether it answers a decision that contradicts the booked result.
    pub contradicts: bool,
}

impl HtmlPage {
    /// A page that tells of no deposit.
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

/// What pages tell of a deposit.
#[derive(Debug)]
pub struct Payment {
    pub(super) merchant: Box<str>,
    pub(super) shop: Box<str>,
    pub(super) order_id: OrderId,
    pub(super) amount: Amount,
    pub(super) currency: Currency,
}

/// That a page comes again, or goes on, by itself.
#[derive(Debug)]
pub struct Refresh {
    /// After so long, in whole seconds.
    pub after: Duration,
    /// Where to; `None`: the same page.
    pub to: Option<RedirectUrl>,
}

impl Refresh {
    /// The same page again.
    #[must_use]
    pub const fn again(seconds: u64) -> Self {
        Self { after: Duration::from_secs(seconds), to: None }
    }
}

/// A deposit as its pages need it.
pub(super) struct DepositPage {
    pub(super) operation: Operation,
    pub(super) deposit: Deposit,
    pub(super) reported: Payment,
    pub(super) return_url: Option<RedirectUrl>,
}

impl DepositPage {
    /// `None` for a withdrawal.
    pub(super) fn new(engine: &Engine, visit: &PageRequest, operation: Operation) -> Option<Self> {
        let Kind::Deposit(deposit) = operation.kind.clone() else { return None };
        let PageRequest { rules, .. } = visit;
        // What is gone from the rules is still told of, by its own name.
        let merchant = rules.merchants.get(&operation.merchant).map(|merchant| merchant.name.clone());
        let shop = rules.shops.get(&operation.shop);
        let reported = Payment {
            merchant: merchant.unwrap_or_else(|| operation.merchant.as_str().into()),
            shop: shop.map_or_else(|| operation.shop.as_str().into(), |shop| shop.name.clone()),
            order_id: operation.order_id.clone(),
            amount: operation.amount,
            currency: operation.currency,
        };
        // A lifetime that was shortened may be over for a deposit whose customer is still on the way.
        let is_open = visit.now < operation.created_at.plus(rules.gateway.pages.return_lifetime);
        let offers_return = is_open && shop.is_none_or(|shop| shop.payin.browser_return);
        let (id, created_at) = (operation.id, operation.created_at);
        let return_url = offers_return.then(|| engine.links().return_link(&rules.gateway, id, created_at));
        Some(Self { operation, deposit, reported, return_url })
    }

    /// Where the customer of a deposit of this status goes, byte for byte as the merchant named it (merchant-api-v2,
    /// browser return destination).
    pub(super) fn destination(&self, status: Status) -> PageResponse {
        let Deposit { success_url, pending_url, fail_url, .. } = &self.deposit;
        let destination = match status {
            Status::Success => success_url,
            Status::Pending => pending_url,
            Status::Failed => fail_url,
        };
        PageResponse::Away(destination.clone())
    }

    pub(super) async fn way(&self, engine: &Engine, rules: &RuleSet) -> Result<NextAction, ApiError> {
        let provider = rules.shops.get(&self.operation.shop).map(|shop| &shop.provider);
        Ok(engine.customer_way(&self.operation, provider).await?)
    }

    /// A page that comes again by itself, and by hand, as long as the link leads to it. Then it goes on to the return link
    /// in place of a page that knows of none.
    pub(super) fn waiting(self, state: PageState, visit: &PageRequest, seconds: u64) -> HtmlPage {
        let page = self.page(state);
        let left = visit.link.expires.saturating_sub(visit.now.seconds());
        if left > i64::try_from(seconds).unwrap_or(i64::MAX) {
            return HtmlPage { refresh: Some(Refresh::again(seconds)), here: Some(visit.target.clone()), ..page };
        }
        let refresh = page.return_url.clone().map(|to| Refresh { to: Some(to), ..Refresh::again(seconds) });
        HtmlPage { refresh, ..page }
    }

    pub(super) fn page(self, state: PageState) -> HtmlPage {
        HtmlPage { payment: Some(self.reported), return_url: self.return_url, ..HtmlPage::of(state) }
    }
}
