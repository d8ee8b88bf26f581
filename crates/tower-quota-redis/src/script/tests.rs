use core::num::NonZeroUsize;
use core::time::Duration;

use redis::Connection;
use tower_quota_core::{Charge, Key, Name, Operation, Quota, Timestamp};
use tower_quota_dev::RedisServer;

use super::SCRIPT;
use crate::keys::KeyNames;
use crate::store_request::StoreRequest;
use crate::wire::BatchRequest;

/// A day in November 2025, in microseconds since the epoch.
const NOW: u64 = 1_763_683_212_345_678;
const DECISIONS: u64 = 4_000;

/// A script with its own keys.
struct Variant {
    source: String,
    keys: KeyNames,
}

impl Variant {
    fn new(prefix: &str, text: &str, replacement: &str) -> Self {
        let (source, _) = &*SCRIPT;
        assert!(source.contains(text), "{text}");
        Self {
            source: source.replace(text, replacement),
            keys: KeyNames::new(prefix, None, false, NonZeroUsize::MIN).unwrap(),
        }
    }

    /// Returns the reply to a decision, and the stored bytes.
    fn decide(
        &self,
        connection: &mut Connection,
        charges: &[Charge<'_>],
        at: u64,
    ) -> (Vec<u8>, Option<Vec<u8>>) {
        let request = StoreRequest::new(Operation::Check, charges, &self.keys);
        let mut batch = BatchRequest::at(Some(Timestamp::from_micros(at)));
        batch.decide(&request.template, &request.clients, &request.sets);
        let call = batch.into_call();
        let key = call.keys[0].as_bytes();
        let reply = redis::cmd("EVAL")
            .arg(&self.source)
            .arg(1)
            .arg(key)
            .arg(&call.request)
            .query(connection)
            .unwrap();
        let stored = redis::cmd("GET").arg(key).query(connection).unwrap();
        (reply, stored)
    }
}

#[test]
fn straight_path_agrees_with_other_paths() {
    let server = RedisServer::start();
    let client = redis::Client::open(server.url()).unwrap();
    let mut connection = client.get_connection().unwrap();
    let admission = "return pack(HEADER, TAKEN, now) .. counts";
    let admission = super::wire::with_constants(admission);
    let counted = format!("redis.call('PING') {admission}");
    let straight = Variant::new("straight", &admission, &counted);
    let others = Variant::new(
        "others",
        "if decision_count == 1 and #KEYS == 1 then",
        "if false then",
    );

    let minute = Quota::per_minute(10);
    // The names choose the quotas, so the second quota of a name is another version.
    let limits = [
        ("bucket", minute),
        ("bucket", Quota::per_minute(12)),
        ("grains", Quota::per_minute(7)),
        ("window", minute.fixed_window()),
        (
            "window",
            minute.fixed_window().offset(Duration::from_secs(7)),
        ),
        ("sliding", minute.sliding_window()),
        ("long", Quota::per_day(20).sliding_window()),
        ("first", minute.fixed_window().from_first_request()),
        ("log", Quota::per_minute(3).sliding_log()),
    ];
    // Most requests have the first limits of each list, so most entries have the slots in order.
    let policies: [&[usize]; 9] = [
        &[0],
        &[2],
        &[3],
        &[5],
        &[6],
        &[0, 2, 3, 5],
        &[3, 0],
        &[1, 4],
        &[7, 8],
    ];
    let (mut random, mut now) = (1_u64, NOW);
    let mut draw = |most: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % (most + 1)
    };
    for number in 0..DECISIONS {
        now += draw(9) / 8 * draw(40_000_000) + draw(2_000_000);
        let at = now - draw(20) / 20 * draw(70_000_000);
        let position = usize::try_from(draw(8)).unwrap();
        // New users come, and few requests have the limits of another policy.
        let policy = if draw(40) == 0 {
            draw(8)
        } else {
            position as u64
        };
        let user = policy + 9 * (number / 300);
        let key = Key::number(Name::new("user"), user);
        let charges: Vec<Charge<'_>> = policies[position]
            .iter()
            .map(|&limit| {
                let (name, quota) = &limits[limit];
                let charge =
                    Charge::new(Name::new(name), quota, &key).cost(1 + draw(9) / 8 * draw(3));
                if draw(30) == 0 {
                    charge.refundable()
                } else {
                    charge
                }
            })
            .collect();
        let expected = others.decide(&mut connection, &charges, at);
        let decided = straight.decide(&mut connection, &charges, at);
        assert_eq!(decided, expected, "decision {number}, {charges:?}");
    }
    let statistics: String = redis::cmd("INFO")
        .arg("commandstats")
        .query(&mut connection)
        .unwrap();
    let (_, pings) = statistics.split_once("cmdstat_ping:calls=").unwrap();
    let admitted: u64 = pings.split(',').next().unwrap().parse().unwrap();
    assert!(
        admitted > DECISIONS / 3,
        "{admitted} of {DECISIONS} decisions"
    );
}
