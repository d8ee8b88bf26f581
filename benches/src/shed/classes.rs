//! A quiet tenant next to a loud one, and a critical class next to a low one.

use tower_quota::key;
use tower_quota_shed::{Priority, ShedLayer};

use super::client::{Sent, Stream, p99, send};
use super::contenders::{CAPACITY, Server};
use crate::Outcome;
use crate::report::Table;

const QUIET: Stream = Stream {
    rate: 0.2 * CAPACITY,
    field: "x-tenant: quiet\r\nx-class: critical\r\n",
};
const LOUD: Stream = Stream {
    rate: 10.0 * CAPACITY,
    field: "x-tenant: loud\r\nx-class: low\r\n",
};
/// Requests so close in time meet the same state, in seconds.
const SAME_INSTANT: f64 = 0.001;

pub(crate) async fn run(quick: bool) -> Outcome<[Table; 2]> {
    let (warm, span) = if quick { (1.0, 3.0) } else { (3.0, 12.0) };
    let by_tenant = || ShedLayer::new().fair_by(key::header("x-tenant"));
    let alone = measure(by_tenant(), &[QUIET], span).await?;
    let next_to = measure(by_tenant(), &[QUIET, LOUD], span).await?;
    let columns = ["answered %", "p99 ms", "p99, times alone"];
    let mut tenants = Table::new("a quiet tenant", &columns, 1);
    let quiet = |sent: &[Sent]| -> Vec<Sent> {
        let of_quiet = |sent: &&Sent| sent.stream == 0 && sent.at >= warm;
        sent.iter().filter(of_quiet).copied().collect()
    };
    let (alone, next_to) = (quiet(&alone), quiet(&next_to));
    let base = p99(&alone, warm);
    for (name, sent) in [
        ("alone", &alone),
        ("next to one at ten times the capacity", &next_to),
    ] {
        let answered = sent.iter().filter(|sent| sent.status == 200).count();
        let share = answered as f64 * 100.0 / sent.len().max(1) as f64;
        let latency = p99(sent, warm);
        let figures = [share, latency, latency / base];
        tenants.row(
            name,
            figures.map(|figure| Some(((figure * 100.0).round() / 100.0).into())),
        );
    }

    let by_class = ShedLayer::new().priority(Priority::from_header("x-class", |_| true)?);
    let sent = measure(by_class, &[QUIET, LOUD], span).await?;
    let columns = [
        "requests",
        "answered",
        "refused",
        "refused while low was admitted",
    ];
    let mut classes = Table::new("classes", &columns, 1);
    let counted = |sent: &&Sent| sent.at >= warm;
    let admitted_low: Vec<f64> = sent
        .iter()
        .filter(|sent| sent.stream == 1 && sent.status == 200)
        .map(|sent| sent.at)
        .collect();
    let mut sorted = admitted_low;
    sorted.sort_by(f64::total_cmp);
    for (stream, name) in ["critical", "low"].into_iter().enumerate() {
        let of_class: Vec<&Sent> = sent
            .iter()
            .filter(counted)
            .filter(|sent| sent.stream == stream)
            .collect();
        let answered = of_class.iter().filter(|sent| sent.status == 200).count();
        let refused: Vec<&&Sent> = of_class.iter().filter(|sent| sent.status == 503).collect();
        let is_inverted = |sent: &&&&Sent| {
            let next = sorted.partition_point(|at| *at < sent.at - SAME_INSTANT);
            stream == 0
                && sorted
                    .get(next)
                    .is_some_and(|at| *at <= sent.at + SAME_INSTANT)
        };
        let inverted = refused.iter().filter(is_inverted).count();
        let figures = [of_class.len(), answered, refused.len(), inverted];
        classes.row(name, figures.map(|figure| Some((figure as f64).into())));
    }
    Ok([tenants, classes])
}

async fn measure(layer: ShedLayer, streams: &[Stream], span: f64) -> Outcome<Vec<Sent>> {
    let server = Server::start(|app| app.layer(layer)).await?;
    Ok(send(server.address, streams, span).await)
}
