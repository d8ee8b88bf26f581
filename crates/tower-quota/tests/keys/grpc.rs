//! What gRPC requests call and bring along.

use http::{Request, Version};
use tower_quota::key;

use crate::{NOBODY, one, read, with};

fn call(path: &str, content_type: &str) -> Request<()> {
    let request = Request::post(path).version(Version::HTTP_2).header("content-type", content_type);
    request.body(()).unwrap()
}

#[test]
fn services_and_methods() {
    let grpc = "application/grpc";
    let cases = [
        ("/shop.Cart/Add", grpc, one("shop.Cart"), one("shop.Cart/Add")),
        ("http://host/shop.Cart/Add", "application/grpc+proto", one("shop.Cart"), one("shop.Cart/Add")),
        ("/shop.Cart/Add", "application/grpc-web", one("shop.Cart"), one("shop.Cart/Add")),
        ("/shop.Cart/Add", "application/json", None, None),
        ("/shop.Cart/", grpc, one("shop.Cart"), None),
        ("/shop.Cart", grpc, None, None),
        ("//Add", grpc, None, None),
        ("/", grpc, None, None),
    ];
    for (path, content_type, service, method) in cases {
        let request = call(path, content_type);
        assert_eq!(read(&key::grpc_service(), &request), service, "{path} {content_type}");
        assert_eq!(read(&key::grpc_method(), &request), method, "{path} {content_type}");
    }
}

#[test]
fn metadata_in_text_and_in_bytes() {
    let cases = [
        ("x-tenant", &["acme"] as &[&str], one("acme")),
        ("X-Tenant", &["acme", "acme"], one("acme")),
        ("x-tenant", &["acme", "other"], NOBODY),
        ("x-tenant", &[""], None),
        ("x-tenant", &[], None),
        ("x-id-bin", &["AAECAw"], one([0, 1, 2, 3])),
        ("x-id-bin", &["AAECAw=="], one([0, 1, 2, 3])),
        ("x-id-bin", &["AAECAw, AAECAw=="], one([0, 1, 2, 3])),
        ("x-id-bin", &["AAECAw,AAECBA"], NOBODY),
        ("x-id-bin", &["AAECAw", "AAECBA"], NOBODY),
        ("x-id-bin", &["AAECAw", "!"], NOBODY),
        ("x-id-bin", &["!"], None),
        ("x-id-bin", &[""], None),
    ];
    for (name, lines, expected) in cases {
        let lines: Vec<_> = lines.iter().map(|line| (name, *line)).collect();
        assert_eq!(read(&key::metadata(name), &with(&lines)), expected, "{lines:?}");
    }
    assert!(key::try_metadata("two words").is_err());
}
