//! The target of each ratio that has one.

/// The least that a ratio should be, by the name of its case. `*` stands for one part of a name.
const WANTED: &[(&str, f64)] = &[
    ("memory/3-limits/*/hot", 2.0),
    ("memory/3-limits/*/10k", 2.0),
    ("memory/3-limits/*/1m", 2.0),
    // Against our own case in which every request asks the same.
    ("memory/mixed/u64/10k", 0.6),
    ("memory/quotas-in-turn/u64/10k", 0.6),
    ("memory/bytes/*/bound", 1.0),
    ("memory/bytes/*/*/bound", 1.0),
    ("memory/bytes/*/*/*/bound", 1.0),
    ("limiter/1-limit/u64/hot", 1.1),
    ("limiter/1-limit/u64/10k", 1.1),
    ("limiter/1-limit/u64/10k-refilled", 1.0),
    ("limiter/1-limit/u64/1m", 1.0),
    ("limiter/1-limit/u64/new", 0.7),
    ("limiter/1-limit/u64/refused", 0.7),
    // Against a keyed and a direct governor, asked one after the other.
    ("limiter/client-and-everyone/hot", 1.3),
    ("limiter/client-and-everyone/10k", 1.3),
    ("limiter/client-and-everyone/1m", 1.1),
    ("limiter/client-and-everyone/two-threads/*", 1.0),
    // Against tower_governor, each with its default fields; over HTTP against a handler that writes the same.
    ("layer/plain", 0.8),
    ("layer/same-fields", 1.0),
    ("layer/headers", 1.3),
    ("layer/refused", 5.0),
    ("layer/http-admitted/handler", 0.95),
    ("layer/http-refused/handler", 0.95),
    // A refusal costs no more than an admitted request.
    ("layer/refused/of-admitted", 1.0),
    ("layer/refused/*/of-admitted", 1.0),
    ("layer/http-refused", 1.0),
    ("layer/http-admitted", 0.98),
    ("layer/http-admitted/3-limits", 0.98),
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
    ("redis/bytes-per-client", 1.9),
    ("redis/overload-goodput", 0.8),
    ("redis/cluster-3", 0.7),
    // The share of requests that did not pass uncounted.
    ("outage/counted", 0.99),
    // Twenty processes whose rules change once a second; 100 ms and 2 s until a document is in force.
    ("reload/throughput", 0.95),
    ("reload/in-force-p50", 1.0),
    ("reload/in-force-max", 1.0),
    ("reload/all-in-force", 1.0),
    ("reload/no-error-or-mixture", 1.0),
    ("reload/nothing-lost", 1.0),
];

/// Returns the target of a ratio, if it has one.
pub(crate) fn wanted(case: &str) -> Option<f64> {
    let matches = |pattern: &str| {
        pattern.split('/').count() == case.split('/').count()
            && pattern
                .split('/')
                .zip(case.split('/'))
                .all(|(pattern, part)| pattern == "*" || pattern == part)
    };
    WANTED
        .iter()
        .find(|(pattern, _)| matches(pattern))
        .map(|(_, wanted)| *wanted)
}

#[cfg(test)]
mod tests {
    use super::wanted;

    #[test]
    fn case_and_variant_have_own_targets() {
        assert_eq!(wanted("memory/3-limits/str/1m"), Some(2.0));
        assert_eq!(wanted("memory/3-limits/str/1m/upkept"), None);
        assert_eq!(
            wanted("limiter/client-and-everyone/two-threads/10k"),
            Some(1.0)
        );
        assert_eq!(wanted("memory/bytes/1-limit"), None);
        assert_eq!(wanted("memory/bytes/1-limit/bound"), Some(1.0));
        assert_eq!(wanted("memory/bytes/3-limits/10m/bound"), Some(1.0));
        assert_eq!(wanted("layer/refused/3-limits"), None);
        assert_eq!(wanted("layer/refused/3-limits/of-admitted"), Some(1.0));
    }
}
