//! Memory per key, each contender in a process of its own.

use std::error::Error;

use super::contender::Keyed;
use super::field::{Entrant, Field};
use super::rounds::fill;
use crate::child;

/// Resident bytes that a contender takes per key, when it has counted so many.
pub(super) fn per_key<K: Field>(contender: &str, limits: usize, keys: u32) -> Result<f64, Box<dyn Error>> {
    let asked = ["memory-worker", contender, K::NAME, &limits.to_string(), &keys.to_string()];
    child::ask(&asked)?.first().copied().ok_or_else(|| "no answer".into())
}

/// The child's side: prints the bytes per key.
pub(crate) fn worker(contender: &str, key: &str, limits: usize, keys: u32) -> Result<(), Box<dyn Error>> {
    let bytes = if key == <u64 as Keyed>::NAME {
        grown(u64::entrants(), contender, limits, keys)
    } else {
        grown(String::entrants(), contender, limits, keys)
    };
    println!("{}", bytes? / f64::from(keys));
    Ok(())
}

fn grown<K: Field>(
    entrants: Vec<Entrant<K>>,
    contender: &str,
    limits: usize,
    keys: u32,
) -> Result<f64, Box<dyn Error>> {
    let entrant = entrants.into_iter().find(|entrant| entrant.name == contender).ok_or("no such contender")?;
    let before = child::resident();
    let contender = (entrant.enter)(limits, keys)?;
    fill(&*contender, keys);
    let after = child::resident();
    drop(contender);
    Ok(after - before)
}
