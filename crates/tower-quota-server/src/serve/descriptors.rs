//! The open files that the system allows.

use std::fs;

/// Files that are no connections of clients, such as listeners, files of limits, and connections to Redis.
const OTHERS: usize = 128;

/// Warns if the system allows less open files than the ports accept connections.
pub(super) fn warn(connections: usize) {
    if let Some(most) = most()
        && most < connections + OTHERS
    {
        tracing::warn!(
            "the system allows {most} open files, and the ports accept {connections} connections: raise `ulimit -n`, or lower \
             --http-connections and --grpc-connections"
        );
    }
}

/// Returns the soft limit of the process, on Linux.
fn most() -> Option<usize> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let limit = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    limit.split_whitespace().next()?.parse().ok()
}
