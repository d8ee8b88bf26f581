use tower_quota_core::Name;

use super::extractor::KeyExtractor;

pub(super) type Parts = Vec<Box<dyn KeyExtractor>>;

/// Joins the scopes of the parts. Parentheses keep nested combinations distinct.
pub(super) fn joined_scope(parts: &Parts, separator: &str) -> Name {
    let scopes: Vec<&str> = parts.iter().map(|part| part.scope().as_str()).collect();
    Name::from(format!("({})", scopes.join(separator)))
}

/// Several extractors, for [`all`](super::all()) and [`first_of`](super::first_of()).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a list of key extractors",
    note = "pass a tuple of two to six extractors, as in `key::all((key::client_ip(), key::method()))`, an array or a `Vec`"
)]
pub trait IntoExtractors {
    /// Returns the extractors in order.
    fn into_extractors(self) -> Vec<Box<dyn KeyExtractor>>;
}

impl<E: KeyExtractor> IntoExtractors for Vec<E> {
    fn into_extractors(self) -> Vec<Box<dyn KeyExtractor>> {
        let mut parts = Parts::new();
        for part in self {
            parts.push(Box::new(part));
        }
        parts
    }
}

impl<E: KeyExtractor, const N: usize> IntoExtractors for [E; N] {
    fn into_extractors(self) -> Vec<Box<dyn KeyExtractor>> {
        Vec::from(self).into_extractors()
    }
}

macro_rules! tuples {
    ($($part:ident)+) => {
        impl<$($part: KeyExtractor),+> IntoExtractors for ($($part,)+) {
            fn into_extractors(self) -> Vec<Box<dyn KeyExtractor>> {
                #[expect(non_snake_case, reason = "the parts are named after their types")]
                let ($($part,)+) = self;
                vec![$(Box::new($part)),+]
            }
        }
    };
}

tuples!(A B);
tuples!(A B C);
tuples!(A B C D);
tuples!(A B C D E);
tuples!(A B C D E F);
