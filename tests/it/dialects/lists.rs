//! Balances and histories.

use super::*;

pub async fn reported(world: &World) {
    let wire = world.wire;
    let [_, _, _, _, balance, history] = wire.paths;
    let empty = (wire.page)(&world.send(&wire.get(&ACME, history)).await.expect(200).json());
    assert_eq!(empty, wire::Page { lines: Vec::new(), number: 1, size: 50, has_more: false });

    let deposit = world.create(&ACME, wire.payin(), &payin("in")).await;
    let lost = with(payout("lost"), "amount", Some("7.01".into()));
    world.create(&ACME, wire.payout(), &lost).await;
    let held = with(with(payout("held"), "amount", Some("3.5".into())), "shop_code", Some("slow-eur".into()));
    world.create(&ACME, wire.payout(), &held).await;
    world.create(&GAMMA, wire.payin(), &payin("foreign")).await;

    for protocol in PROTOCOLS {
        let balances = (wire.balances)(&world.send_by(protocol, &wire.get(&ACME, balance)).await.expect(200).json());
        let eur = balances.iter().find(|[currency, ..]| currency == "EUR").expect("a balance in EUR");
        assert_eq!(eur[1..], ["-3.50".to_owned(), "3.50".to_owned()]);

        let page = (wire.page)(&world.send_by(protocol, &wire.get(&ACME, history)).await.expect(200).json());
        let reported: Vec<_> = page
            .lines
            .iter()
            .map(|(seen, kind, _)| {
                (seen.external_id.as_str(), seen.status.as_str(), seen.amount.as_str(), kind.as_str())
            })
            .collect();
        let [pending, _, failed] = wire.words;
        assert_eq!(
            reported,
            [
                ("held", pending, "3.50", "payout"),
                ("lost", failed, "7.01", "payout"),
                ("in", pending, "10.50", "payin")
            ]
        );
        assert_eq!((page.number, page.size, page.has_more), (1, 50, false));
        let (first, ..) = page.lines.last().unwrap();
        assert_eq!(*first, world.seen(&ACME, &wire.payin_status("external_id=in")).await);
        assert_eq!(first.transaction_id, deposit.transaction_id);
        assert_eq!(page.lines[0].0.account_number.as_deref(), Some("400012******1234"));

        let ask = async |query: String| {
            let request = wire.get(&ACME, &format!("{history}?{query}"));
            (wire.page)(&world.send_by(protocol, &request).await.expect(200).json())
        };
        let ids = |page: &wire::Page| -> Vec<String> {
            page.lines.iter().map(|(seen, ..)| seen.external_id.clone()).collect()
        };
        assert_eq!(ids(&ask(format!("status={failed}")).await), ["lost"]);
        assert_eq!(ids(&ask(format!("status={pending}&type=payout&shop_code=slow-eur")).await), ["held"]);
        let second = ask("per_page=1&page=2".to_owned()).await;
        assert_eq!((ids(&second), second.number, second.size, second.has_more), (vec!["lost".to_owned()], 2, 1, true));
        let bounds = format!("created_from={0}&created_to={0}", page.lines[1].2.replace(':', "%3A"));
        assert!(ids(&ask(bounds).await).contains(&"lost".to_owned()), "what is shown can be asked for");
        let foreign_word = if pending == "PENDING" { "waiting" } else { "PENDING" };
        for query in [format!("status={foreign_word}"), "nonsense=1".to_owned(), "page=0".to_owned()] {
            let name = query.split('=').next().unwrap().to_owned();
            let request = wire.get(&ACME, &format!("{history}?{query}"));
            let why = world.refused_by(protocol, &request, 400).await;
            assert!(why.contains(&name), "{why}");
        }
    }
}
