/// Returns the known name nearest to an unknown name, if it is near enough.
pub(crate) fn nearest<'a>(
    unknown: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    // Skip a longer text, which is no name. The time grows with the product of both lengths.
    if unknown.len() > 64 {
        return None;
    }
    let distance =
        |name: &str| strsim::damerau_levenshtein(&unknown.to_lowercase(), &name.to_lowercase());
    let most = 1 + unknown.chars().count() / 4;
    let near = known
        .into_iter()
        .filter(|name| name.len().abs_diff(unknown.len()) <= most);
    near.map(|name| (distance(name), name))
        .filter(|(steps, _)| *steps <= most)
        .min()
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn misspelt_name_finds_its_neighbour() {
        let known = ["quota", "name", "on_store_failure", "key"];
        for (unknown, near) in [
            ("qouta", Some("quota")),
            ("Key", Some("key")),
            ("on_store_fail", Some("on_store_failure")),
            ("banana", None),
            ("", None),
        ] {
            assert_eq!(nearest(unknown, known), near, "{unknown}");
        }
    }
}
