//! Look-ups of a value that a request may send several times: a path, a host.

use tower_quota::RequestHead;

/// Visits the numbers that the values of a request find.
///
/// A match of a limit or a block list must hold for any value, and a match that exempts the request for all of them.
/// `each_value` calls its argument with one value after another, as long as the answer suits it.
pub(super) fn find_values<V: ?Sized>(
    head: &RequestHead<'_>,
    each_value: impl FnOnce(&mut dyn FnMut(&V) -> bool),
    find: impl Fn(&V, &mut dyn FnMut(u32)),
    visit: &mut dyn FnMut(u32),
) {
    if head.holds_in_doubt() {
        each_value(&mut |value| {
            find(value, visit);
            false
        });
        return;
    }
    let mut common: Option<Vec<u32>> = None;
    each_value(&mut |value| {
        let mut found = Vec::new();
        find(value, &mut |number| found.push(number));
        if let Some(earlier) = &common {
            found.retain(|number| earlier.contains(number));
        }
        common = Some(found);
        true
    });
    common.into_iter().flatten().for_each(visit);
}
