//! Goodput by load, and work that takes five times as long for a while.

use std::time::Duration;

use super::client::{Stream, goodput, p99, send};
use super::contenders::{ALL, CAPACITY, Contender, RIGHT, USEFUL, WRONG};
use crate::Outcome;
use crate::report::Table;
use crate::turns::rest;

const LOADS: [f64; 6] = [0.5, 1.0, 1.5, 2.0, 4.0, 10.0];

fn stream(load: f64) -> [Stream; 1] {
    [Stream {
        rate: load * CAPACITY,
        field: "",
    }]
}

fn names() -> Vec<&'static str> {
    ALL.iter().map(|(name, _)| *name).collect()
}

/// Measures each contender under each load. The first seconds do not count.
pub(crate) async fn loads(quick: bool) -> Outcome<[Table; 2]> {
    let (warm, span) = if quick { (1.0, 2.0) } else { (2.0, 4.5) };
    let unloaded = {
        let server = Contender::Nothing.start().await?;
        p99(&send(server.address, &stream(0.3), span).await, warm)
    };
    let mut share = Table::new("goodput, % of the best fixed limit", &names(), 1);
    let mut slower = Table::new("p99, times the unloaded p99", &names(), 1);
    for load in LOADS {
        let (mut figures, mut best) = (Vec::new(), 0.0_f64);
        for (_, contender) in ALL {
            let server = contender.start().await?;
            let sent = send(server.address, &stream(load), span).await;
            let figure = (goodput(&sent, warm, span, USEFUL), p99(&sent, warm));
            let is_fixed = *contender == RIGHT || *contender == WRONG;
            if is_fixed && figure.1 <= 2.0 * unloaded {
                best = best.max(figure.0);
            }
            figures.push(figure);
        }
        let row = format!("load {load}");
        let goodputs = figures.iter().map(|(goodput, _)| goodput / best * 100.0);
        share.row(&row, goodputs.map(|share| Some(share.round().into())));
        let times = figures.iter().map(|(_, p99)| p99 / unloaded * 10.0);
        slower.row(&row, times.map(|times| Some((times.round() / 10.0).into())));
    }
    Ok([share, slower])
}

/// Doubles the load, and makes the work five times as slow in the second of three parts.
pub(crate) async fn step(quick: bool) -> Outcome<Table> {
    let part = if quick { 3.0 } else { 10.0 };
    let columns = [
        "goodput before",
        "goodput while slow, times 5",
        "goodput afterwards",
        "seconds until back",
    ];
    let mut table = Table::new("work five times as slow, and back", &columns, 1);
    for (name, contender) in ALL {
        if *contender == Contender::Nothing {
            // A queue without an end has no way back.
            continue;
        }
        let server = contender.start().await?;
        let workers = std::sync::Arc::clone(&server.workers);
        let slowness = tokio::spawn(async move {
            rest(Duration::from_secs_f64(part)).await;
            workers.slow_down(5.0);
            rest(Duration::from_secs_f64(part)).await;
            workers.slow_down(1.0);
        });
        let sent = send(server.address, &stream(2.0), 3.0 * part).await;
        slowness.await?;
        let within = |from: f64, to: f64| goodput(&sent, from * part, to * part, USEFUL);
        let before = within(0.4, 1.0);
        let half = part / 20.0;
        let is_low = |step: &u32| {
            let from = 2.0 * part + f64::from(*step) * half;
            goodput(&sent, from, from + half, USEFUL) < 0.9 * before
        };
        let low = (0..20).rev().find(is_low);
        let back = low.map_or(0.0, |step| f64::from(step + 1) * half);
        let figures = [
            before.round(),
            (within(1.3, 2.0) * 5.0).round(),
            within(2.3, 3.0).round(),
            back,
        ];
        table.row(*name, figures.map(|figure| Some(figure.into())));
    }
    Ok(table)
}
