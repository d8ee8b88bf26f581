"""Checks refused calls with grpcio, which decodes statuses and their details. Argument: the server's address."""

import sys

import grpc
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_status import rpc_status

HOUR = 3600
SERVICE = "/grpc.health.v1.Health/"


def check_refusal(error):
    """Asserts the parts of a refusal, for every kind of call."""
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED, error
    assert error.details().startswith('Over the limit "calls": retry in '), error.details()

    # from_call compares the code and the message of the details with the status of the call.
    status = rpc_status.from_call(error)
    found = {}
    for kind in (error_details_pb2.RetryInfo, error_details_pb2.QuotaFailure, error_details_pb2.ErrorInfo):
        found[kind] = kind()
        assert sum(detail.Unpack(found[kind]) for detail in status.details) == 1, kind
    retry = found[error_details_pb2.RetryInfo].retry_delay
    assert HOUR - 60 < retry.seconds + retry.nanos / 1e9 <= HOUR, retry
    (violation,) = found[error_details_pb2.QuotaFailure].violations
    assert (violation.subject, violation.quota_id, violation.quota_value) == ("limit:calls", "calls", 1), violation
    info = found[error_details_pb2.ErrorInfo]
    assert (info.reason, info.domain) == ("RATE_LIMIT_EXCEEDED", "api.example.com"), info

    # In a Trailers-Only response, the only frame has all fields, and the client reads them as trailers.
    trailers = dict(error.trailing_metadata())
    seconds = int(trailers["retry-after"])
    assert 0 <= seconds - retry.seconds <= 1, trailers
    assert 0 <= int(trailers["grpc-retry-pushback-ms"]) - retry.seconds * 1000 <= 1000, trailers
    assert trailers["ratelimit"] == f'"calls";r=0;t={seconds}', trailers
    assert not error.initial_metadata(), error.initial_metadata()


def refused(call):
    try:
        call()
    except grpc.RpcError as error:
        check_refusal(error)
    else:
        raise AssertionError("the call was not refused")


def main(address):
    request = health_pb2.HealthCheckRequest()
    with grpc.insecure_channel(address) as channel:
        health = health_pb2_grpc.HealthStub(channel)

        unary = [("x-client", "unary")]
        reply, call = health.Check.with_call(request, metadata=unary, timeout=20)
        assert reply.status == health_pb2.HealthCheckResponse.SERVING
        assert dict(call.initial_metadata())["ratelimit-policy"] == '"calls";q=1;w=3600', call.initial_metadata()
        assert "ratelimit" not in dict(call.trailing_metadata())
        refused(lambda: health.Check(request, metadata=unary, timeout=20))
        print("grpcio reads the refusal of a unary call")

        stream = [("x-client", "stream")]
        watch = health.Watch(request, metadata=stream, timeout=20)
        assert next(watch).status == health_pb2.HealthCheckResponse.SERVING
        assert dict(watch.initial_metadata())["ratelimit"].startswith('"calls";r=0;t=')
        refused(lambda: next(health.Watch(request, metadata=stream, timeout=20)))
        watch.cancel()
        print("grpcio reads the refusal of a server's stream")

        serialise = health_pb2.HealthCheckRequest.SerializeToString
        parse = health_pb2.HealthCheckResponse.FromString
        both = channel.stream_stream(SERVICE + "Watch", request_serializer=serialise, response_deserializer=parse)
        refused(lambda: next(both(iter([request] * 3), metadata=unary, timeout=20)))
        upload = channel.stream_unary(SERVICE + "Check", request_serializer=serialise, response_deserializer=parse)
        refused(lambda: upload(iter([request] * 3), metadata=unary, timeout=20))
        print("grpcio reads the refusal of a client's stream")


main(sys.argv[1])
