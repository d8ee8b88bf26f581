//! gRPC services, methods and metadata.

use http::Request;
use tower_quota::key;

use crate::{SHARED, one, read, with};

#[test]
fn grpc_path_alone_has_service_and_method() {
    let cases = [
        ("/shop.Cart/Add", one("shop.Cart"), one("shop.Cart/Add")),
        (
            "http://host/shop.Cart/Add",
            one("shop.Cart"),
            one("shop.Cart/Add"),
        ),
        ("/shop.Cart/", one("shop.Cart"), None),
        ("/shop.Cart", None, None),
        ("//Add", None, None),
        ("/", None, None),
    ];
    for (path, service, method) in cases {
        for content_type in ["application/grpc", "application/grpc-web", "text/plain", ""] {
            let request = Request::post(path)
                .header("content-type", content_type)
                .body(())
                .unwrap();
            assert_eq!(
                read(&key::grpc_service(), &request),
                service,
                "{path} {content_type}"
            );
            assert_eq!(
                read(&key::grpc_method(), &request),
                method,
                "{path} {content_type}"
            );
        }
    }
}

#[test]
fn metadata_is_read_as_text_and_bytes() {
    let cases = [
        ("x-tenant", &["acme"] as &[&str], one("acme")),
        ("X-Tenant", &["acme", "acme"], one("acme")),
        ("x-tenant", &["acme", "other"], SHARED),
        ("x-tenant", &["acme ", "\tacme", " acme\t"], one("acme")),
        ("x-tenant", &[""], None),
        ("x-tenant", &[" \t"], None),
        ("x-tenant", &[], None),
        ("x-id-bin", &["AAECAw"], one([0, 1, 2, 3])),
        ("x-id-bin", &["AAECAw=="], one([0, 1, 2, 3])),
        ("x-id-bin", &["AAECAw, AAECAw=="], one([0, 1, 2, 3])),
        ("x-id-bin", &["AAECAw,AAECBA"], SHARED),
        ("x-id-bin", &["AAECAw", "AAECBA"], SHARED),
        ("x-id-bin", &["AAECAw", "!"], SHARED),
        ("x-id-bin", &["!"], None),
        ("x-id-bin", &[""], None),
    ];
    for (name, lines, expected) in cases {
        let lines: Vec<_> = lines.iter().map(|line| (name, *line)).collect();
        assert_eq!(
            read(&key::metadata(name), &with(&lines)),
            expected,
            "{lines:?}"
        );
    }
    assert!(key::try_metadata("two words").is_err());
}
