use http::Method;
use utoipa::PartialSchema;
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Content, InfoBuilder, OpenApi, OpenApiBuilder, Ref, RefOr, ResponseBuilder};

use crate::auth::Role;
use crate::problem::{ProblemBody, ProblemKind};

const BEARER: &str = "bearer";

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

/// Adds the token and the common problems to all operations.
pub(crate) fn complete(mut document: OpenApi, has_tokens: bool) -> OpenApi {
    let components = document.components.get_or_insert_default();
    components
        .schemas
        .insert("Problem".to_owned(), ProblemBody::schema());
    if has_tokens {
        let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        components.add_security_scheme(BEARER, scheme);
    }
    for (path, item) in &mut document.paths.paths {
        let operations = [
            (Method::GET, &mut item.get),
            (Method::PUT, &mut item.put),
            (Method::POST, &mut item.post),
            (Method::DELETE, &mut item.delete),
        ];
        for (method, operation) in operations {
            // Skip operations without a token, which have no problems.
            if let Some(operation) = operation
                && operation.security.is_none()
            {
                complete_operation(operation, Role::needed(&method, path), has_tokens);
            }
        }
    }
    document
}

fn complete_operation(operation: &mut Operation, role: Role, has_tokens: bool) {
    let description = operation.description.get_or_insert_default();
    let separator = if description.is_empty() { "" } else { "\n\n" };
    description.push_str(&format!("{separator}Needs the role `{role}`."));
    if has_tokens {
        let required = SecurityRequirement::new(BEARER, [role.as_str()]);
        operation.security = Some(vec![required]);
    }
    let mut common = vec![
        ProblemKind::InvalidRequest,
        ProblemKind::Unauthenticated,
        ProblemKind::TooManyChecks,
        ProblemKind::TooManyStreams,
        ProblemKind::Unavailable,
    ];
    if role > Role::Read {
        common.push(ProblemKind::RoleRequired);
    }
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
    // Describe every error as a problem.
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
