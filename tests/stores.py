"""An S3 server on this machine, and a proxy in front of it that fails on request."""

from __future__ import annotations

import http.client
import os
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pyarrow.fs as pa_fs

KEYS = {
    "AWS_ACCESS_KEY_ID": "anybody",
    "AWS_SECRET_ACCESS_KEY": "anything",
    "AWS_EC2_METADATA_DISABLED": "true",
}


class Faulty:
    """Passes requests on to a server, except those for which ``fault(method, path, body)`` says otherwise.

    "cut": the connection is closed when half of the request has been passed on; "500": it is refused;
    "half": the answer is cut in the middle. None: passed on.
    """

    def __init__(self, upstream: tuple[str, int]) -> None:
        self.upstream = upstream
        self.fault = lambda method, path: None
        self.requests: list[tuple[str, str]] = []
        faulty = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def answer(self) -> None:
                faulty.pass_on(self)

            do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = answer  # noqa: N815

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        Thread(target=self.server.serve_forever, daemon=True).start()

    def pass_on(self, request: BaseHTTPRequestHandler) -> None:
        self.requests.append((request.command, request.path))
        fault = self.fault(request.command, request.path)
        body = read_body(request)
        if fault == "500":
            request.send_error(500)
            return
        if fault == "cut":
            request.close_connection = True
            request.connection.close()
            return
        upstream = http.client.HTTPConnection(*self.upstream)
        upstream.putrequest(request.command, request.path, skip_host=True, skip_accept_encoding=True)
        for name, value in request.headers.items():
            if name.lower() not in ("transfer-encoding", "content-length", "expect", "connection"):
                upstream.putheader(name, value)
        upstream.putheader("Content-Length", str(len(body)))
        upstream.endheaders(body)
        answer = upstream.getresponse()
        content = answer.read()
        request.send_response(answer.status)
        length = answer.headers.get("Content-Length", str(len(content)))
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "content-length", "connection", "server", "date"):
                request.send_header(name, value)
        request.send_header("Content-Length", length)
        request.end_headers()
        if fault == "half":
            request.wfile.write(content[: len(content) // 2])
            request.close_connection = True
            request.wfile.flush()
            request.connection.close()
            return
        request.wfile.write(content)
        upstream.close()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def read_body(request: BaseHTTPRequestHandler) -> bytes:
    """The body as it was sent: with a length, or in chunks, which stay signed as they are."""
    if "chunked" not in request.headers.get("Transfer-Encoding", ""):
        return request.rfile.read(int(request.headers.get("Content-Length", 0)))
    body = b""
    while size := int(request.rfile.readline().split(b";")[0], 16):
        body += request.rfile.read(size)
        request.rfile.readline()
    request.rfile.readline()
    return body


@contextmanager
def s3():
    """Yield a server with the bucket "tables", and the proxy before it."""
    from moto.server import ThreadedMotoServer

    os.environ.update(KEYS)
    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    port = server.get_host_and_port()[1]
    options = {"endpoint_override": f"http://127.0.0.1:{port}", "region": "us-east-1"}
    pa_fs.S3FileSystem(allow_bucket_creation=True, **options).create_dir("tables")
    proxy = Faulty(("127.0.0.1", port))
    try:
        yield proxy
    finally:
        proxy.close()
        server.stop()
        for name in KEYS:
            del os.environ[name]
