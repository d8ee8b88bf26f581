//! The OpenAPI document.

use utoipa::PartialSchema;
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Content, InfoBuilder, OpenApi, OpenApiBuilder, Ref, RefOr, ResponseBuilder};

use crate::problem::{ProblemBody, ProblemKind};

/// The name of the security scheme.
const BEARER: &str = "bearer";

/// Returns the document without paths.
pub(crate) fn frame() -> OpenApi {
    let info = InfoBuilder::new()
        .title("tower-quota admin API")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(
            "Changes rate limits while requests run, and operates on single clients. Errors are RFC 9457.",
        ))
        .build();
    OpenApiBuilder::new().info(info).build()
}

/// Adds what all operations have in common: the token, and the problems of any request.
pub(crate) fn complete(mut document: OpenApi, has_tokens: bool) -> OpenApi {
    let components = document.components.get_or_insert_default();
    components
        .schemas
        .insert("Problem".to_owned(), ProblemBody::schema());
    if has_tokens {
        let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        components.add_security_scheme(BEARER, scheme);
        document.security = Some(vec![SecurityRequirement::new::<_, [&str; 0], &str>(
            BEARER,
            [],
        )]);
    }
    for item in document.paths.paths.values_mut() {
        let operations = [
            &mut item.get,
            &mut item.put,
            &mut item.post,
            &mut item.delete,
        ]
        .into_iter()
        .filter_map(Option::as_mut);
        // The operations that need no token have no problems either.
        operations
            .filter(|operation| operation.security.is_none())
            .for_each(complete_operation);
    }
    document
}

fn complete_operation(operation: &mut Operation) {
    let mut common = vec![
        ProblemKind::InvalidRequest,
        ProblemKind::Unauthenticated,
        ProblemKind::TooManyStreams,
        ProblemKind::Unavailable,
    ];
    if operation.request_body.is_some() {
        common.extend([ProblemKind::TooLarge, ProblemKind::UnsupportedType]);
    }
    let responses = &mut operation.responses.responses;
    for kind in common {
        let description = kind.status().canonical_reason().unwrap_or_default();
        let response = ResponseBuilder::new().description(description).build();
        responses
            .entry(kind.status().as_str().to_owned())
            .or_insert(RefOr::T(response));
    }
    // Every error is a problem.
    for (status, response) in responses.iter_mut() {
        if let (true, RefOr::T(response)) = (status.starts_with(['4', '5']), response) {
            let schema = RefOr::Ref(Ref::from_schema_name("Problem"));
            response.content.insert(
                "application/problem+json".to_owned(),
                RefOr::T(Content::new(Some(schema))),
            );
        }
    }
}
