//! The OpenAPI document.

use crate::server::Instance;

#[tokio::test]
async fn document_describes_every_route() {
    let instance = Instance::start().await;
    let document = instance.json("/v1/openapi.json").await;
    assert_eq!(document, serde_json::to_value(tower_quota_admin::openapi()).unwrap());
    let paths = document["paths"].as_object().unwrap();
    let methods = ["get", "put", "post", "delete", "patch"];
    for (path, item) in paths {
        // The router knows the path: other methods than those of the document are not allowed.
        let path = path
            .replace("{limit}", "minute")
            .replace("{key}", "ann")
            .replace("{version}", "1")
            .replace("{id}", "x")
            .replace("{hash}", "x")
            .replace("{reference}", "x");
        for method in methods {
            let upper = method.to_uppercase().parse().unwrap();
            let status = instance.request(upper, &path).send().await.unwrap().status();
            assert_eq!(status == 405, item.get(method).is_none(), "{method} {path}: {status}");
        }
    }
    assert_eq!(paths.len(), 21);
}
