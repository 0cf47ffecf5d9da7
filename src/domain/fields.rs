//! Names inside the `fields` object that mean something to everybody (merchant-api-v2, "Shop fields").

use super::Direction;

/// The member that holds the customer's address; every shop takes it.
pub const MERCHANT_USER_IP: &str = "merchant_user_ip";

/// Members with which every shop can be given customer details: strings where they are not empty, for both directions.
pub const CUSTOMER_FIELDS: [&str; 5] = ["first_name", "last_name", "middle_name", "email", "phone"];

/// Names that cannot appear inside `fields`.
#[must_use]
pub const fn reserved_names(direction: Direction) -> &'static [&'static str] {
    match direction {
        Direction::Payin => {
            &["method", "customer_account_id", "success_url", "pending_url", "fail_url", "return_user_url"]
        }
        Direction::Payout => {
            &["method", "customer_account_id", "account_channel", "recipient_account", "account_number"]
        }
    }
}
