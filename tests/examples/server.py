# SPDX-License-Identifier: LGPL-2.1-or-later
"""An HTTP server on a free port, which it prints. It prints the requested paths, and never answers."""
import threading

from servers import HttpServer


class Silent(HttpServer):
    def answer(self, request):
        print(request.path, flush=True)
        threading.Event().wait()


print(Silent().place.partition(":")[2], flush=True)
threading.Event().wait()
