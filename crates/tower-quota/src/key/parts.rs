//! The parts of combined extractors.

use super::extractor::KeyExtractor;
use super::mistake::Mistake;
use crate::head::RequestHead;

/// Several extractors, for [`all`](super::all()) and [`first_of`](super::first_of()).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a list of key extractors",
    note = "pass a tuple of two to six extractors, as in `key::all((key::client_ip(), key::method()))`, an array or a `Vec`"
)]
pub trait IntoExtractors {
    /// Returns the extractors, in order.
    fn into_extractors(self) -> Vec<Box<dyn KeyExtractor>>;
}

impl<E: KeyExtractor> IntoExtractors for Vec<E> {
    fn into_extractors(self) -> Vec<Box<dyn KeyExtractor>> {
        self.into_iter()
            .map(|extractor| Box::new(extractor) as Box<dyn KeyExtractor>)
            .collect()
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

/// The parts of a combined extractor.
pub(super) struct Parts(pub(super) Vec<Box<dyn KeyExtractor>>);

impl Parts {
    pub(super) fn scopes(&self, separator: &str) -> String {
        let scopes: Vec<&str> = self.0.iter().map(|part| part.scope().as_str()).collect();
        scopes.join(separator)
    }

    pub(super) fn identities(&self) -> Vec<u64> {
        self.0.iter().map(KeyExtractor::identity).collect()
    }

    /// Returns a mistake of one of the parts, a missing peer address first.
    ///
    /// That one is the server's mistake if a key is missing.
    pub(super) fn mistake(&self, head: &RequestHead<'_>) -> Option<Mistake> {
        let mistakes = || self.0.iter().filter_map(|part| part.mistake(head));
        mistakes()
            .find(|mistake| *mistake == Mistake::NoPeerAddress)
            .or_else(|| mistakes().next())
    }
}
