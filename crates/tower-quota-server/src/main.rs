//! The program `tower-quota-server`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;
use tower_quota_server::options::Options;
use tower_quota_server::serve::{BoundServer, StartError};

#[tokio::main]
async fn main() -> ExitCode {
    match run(&Options::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tower-quota-server: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: &Options) -> Result<(), StartError> {
    let server = BoundServer::bind(options).await?;
    println!("{}", server.summary());
    server.run(ended()).await
}

/// Waits for SIGTERM or SIGINT.
#[cfg(unix)]
async fn ended() {
    use tokio::signal::unix::{SignalKind, signal};

    let signals = (
        signal(SignalKind::terminate()),
        signal(SignalKind::interrupt()),
    );
    let (Ok(mut terminate), Ok(mut interrupt)) = signals else {
        // Without handlers, the signals end the process at once.
        return core::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}

/// Waits for Ctrl-C.
#[cfg(not(unix))]
async fn ended() {
    if tokio::signal::ctrl_c().await.is_err() {
        core::future::pending().await
    }
}
