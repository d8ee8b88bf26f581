//! What a layer adds to a request, on several threads.

use std::thread;

use axum::body::Body;
use axum::http::{Request, Response};
use std::convert::Infallible;
use tower::limit::GlobalConcurrencyLimitLayer;
use tower::{Layer, Service};
use tower_quota_shed::ShedLayer;

use crate::Outcome;
use crate::layer::{Trivial, admits, request};
use crate::report::{Cell, Table};
use crate::turns::{Round, in_turns, nanoseconds_of, now};

/// Requests of each thread in a round.
const REQUESTS: u32 = 20_000;

pub(crate) fn run(quick: bool) -> Outcome<Table> {
    let rounds = if quick { 3 } else { 15 };
    let columns = ["tower-quota", "ConcurrencyLimit"];
    let mut table =
        Table::new("ns added by the limit", &columns, rounds).next_to("ConcurrencyLimit");
    for threads in [1, 2, 4, 8, 16] {
        let shed = ShedLayer::new().layer(Trivial);
        let limit = GlobalConcurrencyLimitLayer::new(1_000).layer(Trivial);
        let contenders: Vec<Round<'_, f64>> = vec![
            Box::new(move || Ok(timed(threads, &Trivial))),
            Box::new(move || Ok(timed(threads, &shed))),
            Box::new(move || Ok(timed(threads, &limit))),
        ];
        let figures = in_turns(rounds, contenders)?;
        let cells: Vec<Cell> = figures
            .iter()
            .filter_map(|rounds| Cell::lowest(rounds))
            .collect();
        let (bare, others) = cells.split_first().ok_or("no contender")?;
        let row = format!("{threads} threads");
        table.row(row, others.iter().map(|cell| Some(cell.above(*bare))));
    }
    Ok(table)
}

/// Returns the nanoseconds of a request, of one core.
fn timed<S, B>(threads: usize, service: &S) -> f64
where
    S: Service<Request<Body>, Response = Response<B>, Error = Infallible> + Clone + Send + Sync,
{
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let began = now();
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut service = service.clone();
                for _ in 0..REQUESTS {
                    admits(&mut service, request());
                }
            });
        }
    });
    let requests = REQUESTS * threads as u32;
    nanoseconds_of(began.elapsed(), requests) * threads.min(cores) as f64
}
