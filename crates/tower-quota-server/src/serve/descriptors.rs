//! The open files that the system allows.

use std::fs;

use crate::options::PortFlags;

/// Files that are no connections of HTTP and gRPC, such as admin connections, files of limits, and connections to Redis.
const OTHERS: u32 = 192;

/// Lowers the connections of HTTP and gRPC, so that one port cannot take the open files of the other.
pub(super) fn lower(flags: &mut PortFlags) {
    let Some(files) = most() else { return };
    let most = (files.saturating_sub(OTHERS) / 2).max(files / 4).max(1);
    if most < flags.http_connections.max(flags.grpc_connections) {
        tracing::warn!(
            "the system allows {files} open files, so HTTP and gRPC accept {most} connections each: raise `ulimit -n` for more"
        );
    }
    flags.http_connections = flags.http_connections.min(most);
    flags.grpc_connections = flags.grpc_connections.min(most);
}

/// Returns the soft limit of the process, on Linux.
fn most() -> Option<u32> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let mut limits = limits.lines();
    let limit = limits.find_map(|line| line.strip_prefix("Max open files"))?;
    limit.split_whitespace().next()?.parse().ok()
}
