//! Closures that say what they do.

use core::any::TypeId;
use std::collections::BTreeSet;
use std::sync::{PoisonError, RwLock};

use http::Request;

use crate::described::{Described, Description};
use crate::head::RequestHead;

/// Asks a closure on requests what it does. Returns `None` if it does not say.
///
/// Only closures of [`describing`] types are asked: another one that calls such a closure does something else.
pub(crate) fn of_closure<F: 'static>(
    _closure: &F,
    ask: impl FnOnce(&RequestHead<'_>),
) -> Option<Described> {
    if !is_describing::<F>() {
        return None;
    }
    let (request, description) = (Request::new(()), Description::default());
    ask(&RequestHead::of(&request).describing(&description));
    description
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
}

/// The types of closures that leave a description where their head asks for one. There are a few dozen.
///
/// Conditions and costs are closures, and no types of our own, so that the compiler infers the type of `head` in
/// `.when(|head| ..)`. So a description cannot stand beside the closure: only the closure knows it.
static DESCRIBING: RwLock<BTreeSet<TypeId>> = RwLock::new(BTreeSet::new());

/// Notes that closures of this type describe themselves.
pub(crate) fn describing<F: 'static>(closure: F) -> F {
    if !is_describing::<F>() {
        DESCRIBING
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(TypeId::of::<F>());
    }
    closure
}

fn is_describing<F: 'static>() -> bool {
    DESCRIBING
        .read()
        .unwrap_or_else(PoisonError::into_inner)
        .contains(&TypeId::of::<F>())
}
