//! The program `tower-quota-server`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use tower_quota_server::logs;
use tower_quota_server::options::{Command, Options};
use tower_quota_server::serve::{BoundServer, StartError, check};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    let options = match Options::read(std::env::args_os()) {
        Ok(options) => options,
        Err(error) => error.exit(),
    };
    let result = match options.command {
        Some(Command::Check) => checked(&options).await,
        _ => serve(&options).await,
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tower-quota-server: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn checked(options: &Options) -> Result<(), StartError> {
    // The program prints the problems itself. The log has the advice of this crate.
    let mut flags = options.logs.clone();
    flags.log_level = "off,tower_quota_server=warn".to_owned();
    logs::install(&flags);
    check(options).await?;
    println!("tower-quota-server: no problems");
    Ok(())
}

async fn serve(options: &Options) -> Result<(), StartError> {
    logs::install(&options.logs);
    // A signal before the first log line counts too.
    let signal = ended();
    let server = BoundServer::bind(options).await?;
    tracing::info!("{}", server.summary());
    server.run(signal).await;
    Ok(())
}

/// Waits for SIGTERM or SIGINT.
#[cfg(unix)]
fn ended() -> impl Future<Output = ()> {
    use tokio::signal::unix::{SignalKind, signal};

    let terminate = signal(SignalKind::terminate());
    let interrupt = signal(SignalKind::interrupt());
    async {
        let (Ok(mut terminate), Ok(mut interrupt)) = (terminate, interrupt) else {
            // Without handlers, the signals end the process at once.
            return core::future::pending().await;
        };
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    }
}

/// Waits for Ctrl-C.
#[cfg(not(unix))]
async fn ended() {
    if tokio::signal::ctrl_c().await.is_err() {
        core::future::pending().await
    }
}
