//! The trait [`OrderHomes`], implemented for every [`Backend`].

use std::collections::HashSet;

use super::{FoundHome, Home, HomeClaim, OrderHome, home_of, homes_of, reserve};
use crate::domain::{Direction, MerchantId, OrderId, UnixMillis};
use crate::store::backend::{Backend, ReadKind};
use crate::store::{Reservations, StoreFuture, checks};

/// The homes of orders that are no operations of this store.
pub trait OrderHomes: Send + Sync + 'static {
    /// Claims an order that has no home, and returns its home. Resolves only after the claim is on disk; claims share a
    /// commit (contract section 6, "Homes and modes").
    fn claim<'a>(
        &'a self,
        merchant: &'a MerchantId,
        direction: Direction,
        order_id: &'a OrderId,
        claim: HomeClaim,
        at: UnixMillis,
    ) -> StoreFuture<'a, OrderHome>;

    /// Returns the home of a merchant's order, if it has one.
    fn order_home<'a>(
        &'a self,
        merchant: &'a MerchantId,
        direction: Direction,
        order_id: &'a OrderId,
    ) -> StoreFuture<'a, Option<OrderHome>>;

    /// Returns the homes of an `order_id` at several merchants and directions, with the places of those that have one.
    fn found_homes<'a>(
        &'a self,
        orders: &'a [(MerchantId, Direction)],
        order_id: &'a OrderId,
    ) -> StoreFuture<'a, Vec<(usize, FoundHome)>>;

    /// Reserves `order_id`s for v1 in one commit. Ids that already name an operation or a journal entry are left
    /// unchanged (contract section 7, `import-ids`). A commit that reserves any id also removes the mark of
    /// [`OrderHomes::mark_complete`].
    fn reserve<'a>(
        &'a self,
        merchant: &'a MerchantId,
        direction: Direction,
        order_ids: &'a [OrderId],
        at: UnixMillis,
    ) -> StoreFuture<'a, Reservations>;

    /// Gives orders without a home the home *lost*, in one commit: they were made after the backup that this store was restored
    /// from (contract section 15).
    fn lose<'a>(
        &'a self,
        orders: &'a [(MerchantId, Direction, OrderId)],
        at: UnixMillis,
    ) -> StoreFuture<'a, Reservations>;

    /// Marks a merchant's reserved ids of a direction as complete: legacy has no others that did not pass this gateway.
    fn mark_complete<'a>(
        &'a self,
        merchant: &'a MerchantId,
        direction: Direction,
        at: UnixMillis,
    ) -> StoreFuture<'a, ()>;

    /// Reports whether a merchant's reserved ids of a direction are marked as complete. One indexed read.
    fn ids_complete<'a>(&'a self, merchant: &'a MerchantId, direction: Direction) -> StoreFuture<'a, bool>;
}

impl<B: Backend> OrderHomes for B {
    fn claim<'a>(
        &'a self,
        merchant: &'a MerchantId,
        direction: Direction,
        order_id: &'a OrderId,
        claim: HomeClaim,
        at: UnixMillis,
    ) -> StoreFuture<'a, OrderHome> {
        let order = self.vault().fingerprint_key().order_key(merchant, direction, order_id);
        let claimed = self.claim_home(order, Home::claimed(claim, merchant, at));
        Box::pin(async move { claimed.await.map(OrderHome::of) })
    }

    fn order_home<'a>(
        &'a self,
        merchant: &'a MerchantId,
        direction: Direction,
        order_id: &'a OrderId,
    ) -> StoreFuture<'a, Option<OrderHome>> {
        Box::pin(async move {
            let order = self.vault().fingerprint_key().order_key(merchant, direction, order_id);
            let home = self.read(ReadKind::Lookup, async move |tx| home_of(tx, order).await).await?;
            Ok(home.map(OrderHome::of))
        })
    }

    fn found_homes<'a>(
        &'a self,
        orders: &'a [(MerchantId, Direction)],
        order_id: &'a OrderId,
    ) -> StoreFuture<'a, Vec<(usize, FoundHome)>> {
        let key = |(merchant, direction): &(MerchantId, Direction)| {
            self.vault().fingerprint_key().order_key(merchant, *direction, order_id)
        };
        let keys: Vec<_> = orders.iter().map(key).collect();
        Box::pin(self.read(ReadKind::Page, async move |tx| {
            let homes = homes_of(tx, &keys).await?.into_iter().enumerate();
            Ok(homes.filter_map(|(place, home)| Some((place, FoundHome::of(home?.ok()?)))).collect())
        }))
    }

    fn reserve<'a>(
        &'a self,
        merchant: &'a MerchantId,
        direction: Direction,
        order_ids: &'a [OrderId],
        at: UnixMillis,
    ) -> StoreFuture<'a, Reservations> {
        let key = |order_id| self.vault().fingerprint_key().order_key(merchant, direction, order_id);
        let imported = Home::imported(merchant, at);
        let claims: Vec<_> = order_ids.iter().map(|order_id| (key(order_id), imported)).collect();
        let merchant = merchant.clone();
        Box::pin(self.transact(async move |tx| {
            let reservations = reserve(tx, &claims).await?;
            if reservations.new > 0 {
                checks::mark_incomplete(tx, &merchant, direction).await?;
            }
            Ok(reservations)
        }))
    }

    fn lose<'a>(
        &'a self,
        orders: &'a [(MerchantId, Direction, OrderId)],
        at: UnixMillis,
    ) -> StoreFuture<'a, Reservations> {
        let claim = |(merchant, direction, order_id): &(MerchantId, Direction, OrderId)| {
            let order = self.vault().fingerprint_key().order_key(merchant, *direction, order_id);
            (order, Home::lost(merchant, at))
        };
        let claims: Vec<_> = orders.iter().map(claim).collect();
        let lists: HashSet<_> = orders.iter().map(|(merchant, direction, _)| (merchant.clone(), *direction)).collect();
        Box::pin(self.transact(async move |tx| {
            let reservations = reserve(tx, &claims).await?;
            // The old service may have got orders that were lost here, too.
            for (merchant, direction) in lists.iter().filter(|_| reservations.new > 0) {
                checks::mark_incomplete(tx, merchant, *direction).await?;
            }
            Ok(reservations)
        }))
    }

    fn mark_complete<'a>(
        &'a self,
        merchant: &'a MerchantId,
        direction: Direction,
        at: UnixMillis,
    ) -> StoreFuture<'a, ()> {
        let merchant = merchant.clone();
        Box::pin(self.run_alone(async move |tx| checks::mark_complete(tx, &merchant, direction, at).await))
    }

    fn ids_complete<'a>(&'a self, merchant: &'a MerchantId, direction: Direction) -> StoreFuture<'a, bool> {
        let merchant = merchant.clone();
        let is_complete = async move |tx: &B::Tx<'_>| checks::is_complete(tx, &merchant, direction).await;
        Box::pin(self.read(ReadKind::Lookup, is_complete))
    }
}
