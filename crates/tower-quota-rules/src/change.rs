use crate::problem::{DocumentPlace, Problem, Problems};
use crate::rules::Rules;

impl Rules {
    /// Returns the problems if these rules replace others.
    ///
    /// A document without a last line `end: true` is an error if the old document has it, because the new text is
    /// probably cut. Limits that the new document lacks are warnings. `overrides_of` returns how many overrides of a
    /// limit an operator has made outside the document.
    ///
    /// ```
    /// use tower_quota_rules::Rules;
    ///
    /// let text = "limits:\n  - { name: minute, quota: 100/minute }\n  - { name: day, quota: 1000/day }\nend: true\n";
    /// let old = Rules::parse(text)?;
    /// let cut = Rules::parse(&text[..text.find("  - { name: day").unwrap()])?;
    /// assert!(cut.after(&old, &|_| 0).has_errors());
    /// # Ok::<(), tower_quota_rules::Problems>(())
    /// ```
    #[must_use]
    pub fn after(&self, old: &Self, overrides_of: &dyn Fn(&str) -> usize) -> Problems {
        let mut problems = Problems::default();
        let (before, after) = (old.document(), self.document());
        if before.end == Some(true) && after.end.is_none() {
            problems.push(Problem {
                message:
                    "the document ends before its last line `end: true`, so it is probably cut"
                        .into(),
                help: Some(
                    "complete it, or write `end: false` into the last line to do without".into(),
                ),
                ..Problem::error(DocumentPlace::of("end"), "")
            });
        }
        for name in before.lost_limits(after) {
            let overrides = match overrides_of(name) {
                0 => String::new(),
                number => format!(", and its overrides by operators ({number}) have no effect"),
            };
            let text = format_args!(
                "the limit {name:?} of the old rules is gone{overrides}: put it back, if that is not meant"
            );
            problems.push(Problem::warning(DocumentPlace::of("limits"), text));
        }
        problems
    }
}
