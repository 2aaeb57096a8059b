# SPDX-License-Identifier: LGPL-2.1-or-later
"""An HTTP server on a free port, which it prints. It answers 404 to every request, except /silent, which it never
answers. Prints the requested paths."""
import http.server
import threading


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        print(self.path, flush=True)
        if self.path == "/silent":
            threading.Event().wait()
        else:
            self.send_error(404)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
print(server.server_port, flush=True)
server.serve_forever()
