use std::borrow::Cow;

use super::RequestHead;

impl<'a> RequestHead<'a> {
    /// Returns the path of the request, not decoded.
    ///
    /// The path includes the prefix of axum's `nest`, and the changes of outer layers. If a layer inside a nest changes
    /// the path, the prefix is missing. Compare paths with [`path_matches`](Self::path_matches), which knows all paths.
    #[must_use]
    pub fn path(&self) -> &'a str {
        match self.present_path() {
            Cow::Borrowed(path) => path,
            Cow::Owned(_) => self.uri.path(),
        }
    }

    /// Returns whether a path of this request matches.
    ///
    /// With the feature `axum`, you compare the `OriginalUri` and the present path, with and without the prefix of a
    /// `nest`. A limit or block list applies if any path matches. An exemption must match the full paths before and
    /// after a rewrite.
    pub fn path_matches(&self, mut matches: impl FnMut(&str) -> bool) -> bool {
        let (original, present) = (self.original_path(), self.present_path());
        let is_rewritten = original != present;
        if !self.holds_in_doubt {
            return matches(original) && (!is_rewritten || matches(&present));
        }
        let without_prefix = self.uri.path();
        matches(original)
            || is_rewritten && matches(&present)
            || original != without_prefix && matches(without_prefix)
    }

    /// Returns the path after all rewrites, with the prefix of axum's `nest`.
    #[cfg(feature = "axum")]
    fn present_path(&self) -> Cow<'a, str> {
        let (original, present) = (self.original_path(), self.uri.path());
        let Some(nest) = self.extensions.get::<axum::extract::NestedPath>() else {
            return Cow::Borrowed(present);
        };
        let nest = nest.as_str().trim_end_matches('/').split('/');
        // The nest is a pattern, whose parameters have values in the original path.
        let sent = original.split('/').chain(core::iter::repeat(""));
        let prefix = nest
            .zip(sent)
            .map(|(segment, sent)| match segment.contains('{') {
                true => sent,
                false => segment,
            });
        let is_prefix = |text: &str| prefix.clone().eq(text.split('/'));
        // `/api` and `/api/` are both `/` inside the nest.
        let is_original = original.strip_suffix(present).is_some_and(is_prefix)
            || present == "/" && is_prefix(original);
        if is_original {
            return Cow::Borrowed(original);
        }
        let mut path = prefix.clone().collect::<Vec<_>>().join("/");
        path.push_str(present);
        Cow::Owned(path)
    }

    #[cfg(not(feature = "axum"))]
    fn present_path(&self) -> Cow<'a, str> {
        Cow::Borrowed(self.uri.path())
    }

    fn original_path(&self) -> &'a str {
        #[cfg(feature = "axum")]
        if let Some(axum::extract::OriginalUri(original)) = self.extensions.get() {
            return original.path();
        }
        self.uri.path()
    }
}
