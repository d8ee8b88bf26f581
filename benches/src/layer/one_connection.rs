//! A service over HTTP/1.1 and its client, on one thread and one connection.

use std::error::Error;
use std::net::SocketAddr;

use axum::Router;
use axum::routing::get;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;

use super::contenders::{Treatment, tower_quota};

/// Makes a step that sends a request and reads its answer.
pub(crate) fn requesting() -> Result<Box<dyn FnMut()>, Box<dyn Error>> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let mut stream = runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let app = Router::new()
            .route("/", get(async || "hello"))
            .layer(tower_quota(Treatment::Headers, 1));
        let service = app.into_make_service_with_connect_info::<SocketAddr>();
        tokio::spawn(async move { axum::serve(listener, service).await });
        TcpStream::connect(address).await
    })?;
    Ok(Box::new(move || {
        let answer = runtime.block_on(async {
            let mut answer = [0; 4_096];
            stream
                .write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
                .await?;
            let read = stream.read(&mut answer).await?;
            Ok::<bool, std::io::Error>(
                answer[..read].starts_with(b"HTTP/1.1 200") && answer[..read].ends_with(b"hello"),
            )
        });
        assert!(matches!(answer, Ok(true)), "an answer that was not meant");
    }))
}
