//! What we want of each ratio, where we have said so.

/// The least that a case's ratio should be.
pub(crate) fn wanted(case: &str) -> Option<f64> {
    let parts: Vec<_> = case.split('/').collect();
    match parts[..] {
        ["memory", "1-limit", _, traffic] => match traffic {
            "hot" => Some(1.0),
            "10k" => Some(1.5),
            "1m" => Some(3.0),
            _ => None,
        },
        ["memory", "3-limits", _, traffic] => match traffic {
            "hot" => Some(3.0),
            "10k" => Some(4.0),
            "1m" => Some(8.0),
            _ => None,
        },
        // No more memory than governor's for a number, and for three limits not above the bound; threads as good as
        // governor's.
        ["memory", "two-threads", _, _]
        | ["memory", "bytes", "1-limit"]
        | ["memory", "bytes", .., "bound"]
        // A refusal is no dearer than an admitted request.
        | ["layer", "refused", .., "of-admitted"]
        | ["layer", "http-refused"]
        | ["flood", .., "p99.99"] => Some(1.0),
        ["layer", "http-admitted"] | ["layer", "http-admitted", "3-limits"] => Some(0.98),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::wanted;

    #[test]
    fn a_case_is_told_from_its_variants() {
        assert_eq!(wanted("memory/3-limits/str/1m"), Some(8.0));
        assert_eq!(wanted("memory/3-limits/str/1m/upkept"), None);
        assert_eq!(wanted("memory/bytes/1-limit"), Some(1.0));
        assert_eq!(wanted("memory/bytes/1-limit/str"), None);
        assert_eq!(wanted("memory/bytes/3-limits/10m/bound"), Some(1.0));
        assert_eq!(wanted("layer/refused"), None);
        assert_eq!(wanted("layer/refused/3-limits/of-admitted"), Some(1.0));
    }
}
