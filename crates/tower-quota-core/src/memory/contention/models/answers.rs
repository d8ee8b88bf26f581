//! Decisions of threads, explained by the model.

use std::slice;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use loom::thread;

use super::{NOW, store};
use crate::charge::Operation;
use crate::memory::contention::history::{Call, ChargeSpec, EVERYONE, Entries, Request, explain};
use crate::quota::Quota;
use crate::sync::every_order;

const TWO: Quota = Quota::per_hour(2);

fn request(operation: Operation, charges: &[(usize, &'static str, Quota, u64)]) -> Request {
    let spec = |&(key, limit, quota, cost): &_| ChargeSpec {
        key,
        limit,
        quota,
        cost,
    };
    Request {
        operation,
        charges: charges.iter().map(spec).collect(),
    }
}

fn check(charges: &[(usize, &'static str, Quota, u64)]) -> Request {
    request(Operation::Check, charges)
}

/// Asserts that some order explains the decisions of the threads and the units left after them.
fn race(name: &str, before: &[Request], threads: &[&[Request]]) {
    let before = before.to_vec();
    let threads: Vec<Vec<Request>> = threads.iter().map(|requests| requests.to_vec()).collect();
    every_order(name, move || {
        let store = store(2);
        let ticks = Arc::new(AtomicU64::new(0));
        let mut calls: Vec<Call> = before
            .iter()
            .map(|request| request.call(&store, &ticks))
            .collect();
        let threads: Vec<_> = threads
            .iter()
            .map(|requests| {
                let (requests, store, ticks) =
                    (requests.clone(), store.clone(), Arc::clone(&ticks));
                thread::spawn(move || {
                    requests
                        .iter()
                        .map(|request| request.call(&store, &ticks))
                        .collect::<Vec<Call>>()
                })
            })
            .collect();
        calls.extend(
            threads
                .into_iter()
                .flat_map(|thread| thread.join().unwrap()),
        );
        let peek = check(&[
            (0, "own", TWO, 0),
            (1, "own", TWO, 0),
            (EVERYONE, "all", TWO, 0),
        ]);
        calls.push(peek.call(&store, &ticks));
        assert!(
            !explain(&calls, &[Entries::default()]).is_empty(),
            "no order explains {calls:#?}"
        );
    });
}

#[test]
fn last_unit_is_taken_once() {
    let (one, two) = (check(&[(0, "own", TWO, 1)]), check(&[(0, "own", TWO, 2)]));
    race(
        "the first units",
        &[],
        &[slice::from_ref(&two), slice::from_ref(&two)],
    );
    race(
        "the last unit",
        slice::from_ref(&one),
        &[slice::from_ref(&one), slice::from_ref(&one)],
    );
    race(
        "the last unit, three",
        slice::from_ref(&one),
        &[slice::from_ref(&one); 3],
    );
}

#[test]
fn checks_race_with_other_operations() {
    let own = &[(0, "own", TWO, 1)];
    let others = [
        ("reset", request(Operation::Reset, own)),
        ("refund", request(Operation::Refund { taken_at: NOW }, own)),
        ("charge", request(Operation::Charge, own)),
        ("peek", check(&[(0, "own", TWO, 0)])),
        ("quota changed", check(&[(0, "own", Quota::per_hour(3), 1)])),
        (
            "limit more",
            check(&[(0, "own", TWO, 1), (0, "wide", Quota::per_minute(5), 1)]),
        ),
        (
            "log",
            check(&[(0, "log", Quota::per_minute(5).sliding_log(), 1)]),
        ),
    ];
    for (name, other) in &others {
        race(
            name,
            &[check(own)],
            &[&[check(own), check(own)], slice::from_ref(other)],
        );
    }
    let (_, reset) = &others[0];
    for (name, other) in &others[1..] {
        race(
            &format!("reset and {name}"),
            &[check(own)],
            &[
                &[check(own)],
                slice::from_ref(reset),
                slice::from_ref(other),
            ],
        );
    }
}

#[test]
fn two_keys_race_in_either_order() {
    let (own, another, all) = (
        (0, "own", TWO, 1),
        (1, "own", TWO, 1),
        (EVERYONE, "all", TWO, 2),
    );
    race(
        "own and all",
        &[],
        &[&[check(&[own, all])], &[check(&[all, own])]],
    );
    race(
        "two of their own",
        &[],
        &[&[check(&[own, another])], &[check(&[another, own])]],
    );
    let (own, all) = ((0, "own", TWO, 1), (EVERYONE, "all", Quota::per_hour(3), 1));
    race(
        "own and all, known",
        &[check(&[own, all])],
        &[&[check(&[own, all])], &[check(&[all, own])]],
    );
    let (another, all) = ((1, "own", TWO, 1), (EVERYONE, "all", TWO, 2));
    race(
        "three of two each",
        &[],
        &[
            &[check(&[own, another])],
            &[check(&[another, all])],
            &[check(&[all, own])],
        ],
    );
}
