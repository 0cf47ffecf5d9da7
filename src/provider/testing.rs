//! Sample operations for the tests of this module.

use crate::domain::{
    AccountNumber, Amount, BrowserUrl, CallbackUrl, Currency, CustomerAccountId, Deposit, Kind, MerchantId, Operation,
    OrderId, ProviderKind, RedirectUrl, ShopCode, State, TransactionId, UnixMillis, Withdrawal,
};

pub(super) const CREATED: UnixMillis = UnixMillis(1_780_000_000_123);

pub(super) fn deposit() -> Operation {
    let url = || BrowserUrl::new("https://a.example/r").unwrap();
    let redirect_url = RedirectUrl::new("https://p.example/pay/4711".into());
    let kind = Deposit { success_url: url(), pending_url: url(), fail_url: url(), redirect_url };
    operation(Kind::Deposit(kind))
}

pub(super) fn withdrawal() -> Operation {
    let account_number = AccountNumber::new("4000123412341234").unwrap();
    operation(Kind::Withdrawal(Withdrawal { account_number, account_channel: Some("sepa".into()) }))
}

fn operation(kind: Kind) -> Operation {
    Operation {
        id: TransactionId::from_stored(4711).unwrap(),
        merchant: MerchantId::new("acme").unwrap(),
        order_id: OrderId::new("o-\"1\"").unwrap(),
        amount: Amount::from_hundredths(1050).unwrap(),
        currency: Currency::new("EUR").unwrap(),
        method: None,
        shop: ShopCode::new("card-eur").unwrap(),
        payment_method: Some("card".into()),
        customer_account_id: Some(CustomerAccountId(-7)),
        callback_url: CallbackUrl::new("https://a.example/cb").unwrap(),
        kind,
        provider: ProviderKind::Http,
        state: State::Pending,
        created_at: CREATED,
    }
}
