# SPDX-License-Identifier: LGPL-2.1-or-later
"""An HTTP server on a free port, which it prints. It answers 404 to every request, except /silent, which it never
answers. Prints the requested paths."""
import threading

from servers import HttpServer


class Nothing(HttpServer):
    def answer(self, request):
        print(request.path, flush=True)
        if request.path == "/silent":
            threading.Event().wait()
        else:
            request.send_error(404)


print(Nothing().place.partition(":")[2], flush=True)
threading.Event().wait()
