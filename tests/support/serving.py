"""A server of pages on this machine, for as long as a test needs it."""

import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

#: A status, headers, and a body.
Answer = tuple[int, Collection[tuple[str, str]], bytes]


@contextmanager
def served(answer: Callable[[BaseHTTPRequestHandler], Answer], host: str = "127.0.0.1") -> Iterator[int]:
    """Answers GET and POST until the end of the block, in threads of this process; yields the port.

    Where an answer says a length of its own, which may be false, its connection is closed.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 60  # seconds that a connection may be idle
        wbufsize = -1  # head and body in one write

        def do_GET(self) -> None:
            status, headers, body = answer(self)
            has_length = any(name == "Content-Length" for name, _ in headers)
            self.send_response(status)
            for name, value in (*headers, *([] if has_length else [("Content-Length", str(len(body)))])):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
            self.close_connection = self.close_connection or has_length

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, format: str, *args: object) -> None:
            """Logs nothing."""

    class Server(ThreadingHTTPServer):
        request_queue_size = 128
        daemon_threads = True

    with Server((host, 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()
