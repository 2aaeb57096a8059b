# SPDX-License-Identifier: LGPL-2.1-or-later
"""Servers on free ports of this machine, for tests. As a program: an HTTP server that prints its port and the requested
paths, and never answers."""
import http.server
import socket
import socketserver
import ssl
import threading


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def listens(port):
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


class Server:
    """`handler`: a class of socketserver, for each connection. `host`: 127.0.0.1 or ::1. `certificate`: a PEM file with
    a key, for TLS. `place` is HOST:PORT."""

    kind = socketserver.ThreadingTCPServer

    def __init__(self, handler, host="127.0.0.1", certificate=None):
        class Listening(self.kind):
            address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
            daemon_threads = allow_reuse_address = True

            def handle_error(self, *_):  # viewers may disconnect
                pass

        self.server = Listening((host, 0), handler)
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.place = f"{f'[{host}]' if ':' in host else host}:{self.server.server_address[1]}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class HttpServer(Server):
    """Calls answer(request) for each GET, with a BaseHTTPRequestHandler."""

    kind = http.server.ThreadingHTTPServer

    def __init__(self, **options):
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                server.answer(self)

            def log_message(self, *_):
                pass

        super().__init__(Handler, **options)


class SilentServer(HttpServer):
    def answer(self, request):
        print(request.path, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    print(SilentServer().place.partition(":")[2], flush=True)
    threading.Event().wait()
