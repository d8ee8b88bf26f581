//! Joins the entry of a client with the sorted sets of its holds, and splits an entry of the model.

// Each test program uses a part of the helpers.
#![allow(dead_code)]

use std::collections::HashMap;

use redis::Connection;
use tower_quota_core::stored::{push_u56, read_u56};
use tower_quota_core::{Algorithm, Name};

/// The bytes of a hold in an entry of the model.
const HOLD: usize = 21;
/// The bytes of the number of holds and their units.
const SUMMARY: usize = 14;

pub(crate) fn key_of_holds(key: &str, limit: &str) -> String {
    format!("{key}:holds:{limit}")
}

/// Returns the entry of a client as the model stores it, or no bytes.
///
/// A set without a slot in the entry comes from an earlier entry, and is left out.
pub(crate) fn joined(connection: &mut Connection, key: &str) -> Vec<u8> {
    let stored: Option<Vec<u8>> = redis::cmd("GET").arg(key).query(connection).unwrap();
    let stored = stored.unwrap_or_default();
    let sets: Vec<String> = redis::cmd("KEYS")
        .arg(key_of_holds(key, "*"))
        .query(connection)
        .unwrap();
    map_holds(&stored, |id, summary| {
        let is_own = |set: &&String| {
            let limit = set.rsplit_once(':').unwrap().1.to_owned();
            Name::from(limit).holds_id() == id
        };
        let holds = sets.iter().find(is_own).map(|set| members(connection, set));
        let holds = holds.unwrap_or_default();
        let mut expected = Vec::new();
        push_u56(&mut expected, holds.len() as u64);
        push_u56(&mut expected, holds.iter().map(|[_, _, units]| units).sum());
        assert_eq!(summary, expected, "{holds:?}");
        let mut bytes = Vec::new();
        for number in holds.into_iter().flatten() {
            push_u56(&mut bytes, number);
        }
        bytes
    })
}

/// Stores an entry of the model, whose holds all belong to one limit.
pub(crate) fn split(connection: &mut Connection, key: &str, limit: &str, entry: &[u8]) {
    let mut set = redis::cmd("ZADD");
    set.arg(key_of_holds(key, limit));
    let stored = map_holds(entry, |_, mut list| {
        let (mut held, mut units_held) = (0, 0);
        while !list.is_empty() {
            let member = list[..7].to_vec();
            let mut next = || read_u56(&mut list).unwrap();
            let (_, expires_at, units) = (next(), next(), next());
            set.arg(expires_at).arg(&member);
            set.arg(-units.cast_signed())
                .arg([&member[..], b"u"].concat());
            (held, units_held) = (held + 1, units_held + units);
        }
        let mut summary = Vec::new();
        push_u56(&mut summary, held);
        push_u56(&mut summary, units_held);
        summary
    });
    set.exec(connection).unwrap();
    redis::cmd("EXPIRE")
        .arg((key_of_holds(key, limit), 60))
        .exec(connection)
        .unwrap();
    redis::cmd("SET")
        .arg(key)
        .arg(stored)
        .exec(connection)
        .unwrap();
}

/// Returns the instant, the expiry and the units of each hold in a set, in the order of the instants.
fn members(connection: &mut Connection, set: &str) -> Vec<[u64; 3]> {
    let lifetime: i64 = redis::cmd("PTTL").arg(set).query(connection).unwrap();
    assert!(lifetime > 0, "{set} has a time to live of {lifetime}");
    let mut scores: HashMap<Vec<u8>, i64> = redis::cmd("ZRANGE")
        .arg((set, 0, -1, "WITHSCORES"))
        .query(connection)
        .unwrap();
    let instants = scores.keys().filter(|member| member.len() == 7);
    let mut instants: Vec<Vec<u8>> = instants.cloned().collect();
    instants.sort_by_key(|member| read_u56(&mut &member[..]));
    let holds = instants.into_iter().map(|mut member| {
        let expires_at = scores.remove(&member).unwrap().cast_unsigned();
        let instant = read_u56(&mut &member[..]).unwrap();
        member.push(b'u');
        let units = scores.remove(&member).map_or(1, |units| -units);
        [instant, expires_at, units.cast_unsigned()]
    });
    let holds = holds.collect();
    assert!(scores.is_empty(), "units without a hold: {scores:?}");
    holds
}

/// Replaces the states of slots with holds. `state_of` gets the number of the counter and the state.
fn map_holds(entry: &[u8], mut state_of: impl FnMut(u32, &[u8]) -> Vec<u8>) -> Vec<u8> {
    let Some((head, mut rest)) = entry.split_at_checked(8) else {
        return Vec::new();
    };
    let mut mapped = head.to_vec();
    while !rest.is_empty() {
        let mut length = 0;
        let mut shift = 0;
        while let Some(&digit) = rest.split_off_first() {
            length |= usize::from(digit & 0x7f) << shift;
            shift += 7;
            if digit < 0x80 {
                break;
            }
        }
        let slot = rest.split_off(..length).unwrap();
        let mut slot = slot.to_vec();
        if slot[4] == Algorithm::Concurrent.state_code() {
            let id = u32::from_le_bytes(slot[..4].try_into().unwrap());
            let full_at = slot.split_off(slot.len() - 7);
            // A slot with a summary has no list.
            let numbers = numbers_end(&slot);
            let state = state_of(id, &slot[numbers..]);
            slot.truncate(numbers);
            slot.extend(state);
            slot.extend(full_at);
        }
        let mut length = slot.len();
        while length >= 0x80 {
            mapped.push(length.to_le_bytes()[0] | 0x80);
            length /= 0x80;
        }
        mapped.push(length.to_le_bytes()[0]);
        mapped.extend(slot);
    }
    mapped
}

/// Returns the position after the three numbers of a quota.
fn numbers_end(slot: &[u8]) -> usize {
    let ends = slot[5..]
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte < 0x80);
    let end = 5 + ends.map(|(position, _)| position + 1).nth(2).unwrap();
    let state = slot.len() - end;
    assert!(state == SUMMARY || state.is_multiple_of(HOLD));
    end
}
