//! The target of each ratio that has one.

/// The least that a ratio should be, by the name of its case. `*` stands for one part of a name.
const TARGETS: &[(&str, f64)] = &[
    // Against governor, whose keyed and direct limiters are asked one after the other for a client and everyone.
    ("memory/1-limit/hot", 1.1),
    ("memory/1-limit/10k", 1.1),
    ("memory/1-limit/10k-refilled", 1.0),
    ("memory/1-limit/1m", 1.0),
    ("memory/1-limit/new", 0.7),
    ("memory/1-limit/refused", 0.7),
    ("memory/3-limits/hot", 2.0),
    ("memory/3-limits/10k", 2.0),
    ("memory/3-limits/1m", 2.0),
    ("memory/client-and-everyone/hot", 1.3),
    ("memory/client-and-everyone/10k", 1.3),
    ("memory/client-and-everyone/1m", 1.1),
    ("threads/*/2", 1.0),
    // Against tower_governor, each with its default fields. Over HTTP against a handler that writes the same.
    ("layer/plain", 0.8),
    ("layer/same-fields", 1.0),
    ("layer/headers", 1.3),
    ("layer/refused", 5.0),
    ("layer/http-admitted/handler", 0.95),
    ("layer/http-refused/handler", 0.95),
    // A refusal costs no more than an admitted request.
    ("layer/refused/of-admitted", 1.0),
    ("layer/refused/3-limits/of-admitted", 1.0),
    // 50 us for all checks in a flood but one in ten thousand.
    ("flood/*/*/p99.99", 1.0),
    ("redis/1-limit", 2.2),
    ("redis/3-limits", 4.0),
    ("redis/3-limits-limitador", 8.0),
    ("redis/3-limits-2-subjects", 3.0),
    ("redis/3-limits-server-cpu", 4.0),
    ("redis/3-limits-client-cpu", 3.0),
    ("redis/p50-64", 1.0),
    ("redis/p99-64", 1.0),
    ("redis/p50-1", 0.7),
    ("redis/mixed", 3.5),
    ("redis/quotas-in-turn", 3.3),
    ("redis/overload-goodput", 0.8),
    ("redis/cluster-3", 0.7),
    ("sizing/bytes-per-client", 1.9),
    // The share of requests that did not pass uncounted.
    ("outage/counted", 0.99),
    // Twenty processes whose rules change once a second. 100 ms and 2 s until a document is in force.
    ("reload/throughput", 0.95),
    ("reload/in-force-p50", 1.0),
    ("reload/in-force-max", 1.0),
    ("reload/all-in-force", 1.0),
    ("reload/no-error-or-mixture", 1.0),
    ("reload/nothing-lost", 1.0),
];

/// Returns the target of a ratio, if it has one.
pub(crate) fn target(case: &str) -> Option<f64> {
    let matches = |pattern: &str| {
        let parts = pattern.split('/').zip(case.split('/'));
        pattern.split('/').count() == case.split('/').count()
            && parts
                .into_iter()
                .all(|(pattern, part)| pattern == "*" || pattern == part)
    };
    let mut targets = TARGETS.iter();
    let found = targets.find(|(pattern, _)| matches(pattern));
    found.map(|(_, target)| *target)
}

#[cfg(test)]
mod tests {
    use super::target;

    #[test]
    fn case_and_variant_have_own_targets() {
        assert_eq!(target("threads/hot/2"), Some(1.0));
        assert_eq!(target("threads/hot/16"), None);
        assert_eq!(target("layer/refused"), Some(5.0));
        assert_eq!(target("layer/refused/3-limits"), None);
        assert_eq!(target("layer/refused/3-limits/of-admitted"), Some(1.0));
    }
}
