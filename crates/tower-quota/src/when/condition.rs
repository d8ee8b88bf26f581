//! What a condition is, and conditions made of others.

use core::fmt;

use crate::head::RequestHead;

/// Says whether something holds of a request. Every closure that does is one, and so are boxes of conditions, which is
/// what the functions of [this module](crate::when) make: they go together into arrays and can be chosen at run time.
///
/// A condition runs on every request: it should neither block nor allocate.
///
/// It is a name for these bounds, not a trait to implement: wrap a type of your own into a closure.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say whether it holds of a request",
    note = "use a condition of `tower_quota::when`, such as `when::path(\"/login\")`, or a closure: `|head| ..`"
)]
pub trait Condition: Fn(&RequestHead<'_>) -> bool + Send + Sync + 'static {}

impl<F: Fn(&RequestHead<'_>) -> bool + Send + Sync + 'static> Condition for F {}

impl fmt::Debug for dyn Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Condition")
    }
}

/// Holds where the other does not.
#[must_use]
pub fn not(condition: impl Condition) -> Box<dyn Condition> {
    Box::new(move |head| !condition(head))
}

/// Holds where at least one of these does, and of nothing if there are none. They are asked in order, up to the first
/// that holds.
///
/// Conditions of different types, such as a closure among those of [this module](crate::when), have to be boxed.
#[must_use]
pub fn any<C: Condition>(conditions: impl IntoIterator<Item = C>) -> Box<dyn Condition> {
    let conditions: Box<[C]> = conditions.into_iter().collect();
    Box::new(move |head| conditions.iter().any(|condition| condition(head)))
}

/// Holds where all of these do, and always if there are none. They are asked in order, up to the first that does not
/// hold. Mixed types have to be boxed, as for [`any`].
#[must_use]
pub fn every<C: Condition>(conditions: impl IntoIterator<Item = C>) -> Box<dyn Condition> {
    let conditions: Box<[C]> = conditions.into_iter().collect();
    Box::new(move |head| conditions.iter().all(|condition| condition(head)))
}
