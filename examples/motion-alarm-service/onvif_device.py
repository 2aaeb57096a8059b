# SPDX-License-Identifier: LGPL-2.1-or-later
"""Presents cameras as ONVIF devices, which notify recorders of motion. The services are device, media, and events with
pull points. Each camera has its own port, because clients identify a device by its host and port.

soapbar reads and writes the envelopes, the addressing, the user's token and the faults; onvif_messages.py has the
bodies."""

import base64
import http.server
import logging
import re
import socket
import threading
import time

import onvif_messages as messages
import pull_points
import uris
from common import Failure, Gst, size_of_caps
from listeners import Listener
from soapbar import NS, SecurityValidationError, SoapEnvelope, SoapFault, SoapVersion, UsernameTokenValidator
from soapbar.core.envelope import build_wsa_response_headers
from soapbar.core.xml import parse_xml, to_bytes

log = logging.getLogger("motion-alarm")
LARGEST = 2**16  # maximum number of bytes of a request
CONNECTIONS = 64  # maximum number of connections to a camera
EVERYBODY = ("GetSystemDateAndTime", "GetServices", "GetCapabilities", "GetServiceCapabilities")  # they need no user
PATIENCE = 60  # seconds between warnings about refused clients
TOKEN = f"{{{NS.WSSE}}}UsernameToken"
DIGEST = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-username-token-profile-1.0#PasswordDigest"
UNKNOWN_SIZE = (1920, 1080)  # assumed until a camera has sent a frame


def fault(text, *subcodes, code="Client"):
    """`subcodes`: such as ter:NotAuthorized. `code`: Client or Server, whichever is at fault."""
    named = (each.partition(":") for each in subcodes)
    return SoapFault(code, text, subcodes=[(messages.NAMES[prefix], name) for prefix, _, name in named])


def write(request, content) -> tuple[int, str, bytes]:
    """The HTTP status, the type and the content of an answer. `request`: a SoapEnvelope, or None; `content`: the
    element of the body, or a SoapFault."""
    version, asked = (request.version, request.ws_addressing) if request else (SoapVersion.SOAP_12, None)
    status, action = 200, re.sub("(Request)?$", "Response", asked.action, count=1) if asked and asked.action else ""
    if isinstance(content, SoapFault):
        action = f"{NS.WSA}/fault"
        status = 400 if content.faultcode == "Client" and version == SoapVersion.SOAP_12 else 500
        content = content.to_soap11_element() if version == SoapVersion.SOAP_11 else content.to_soap12_element()
    envelope = SoapEnvelope(version, body_elements=[content])
    for header in build_wsa_response_headers(asked, action) if asked else []:
        envelope.add_header(header)
    return status, version.content_type, to_bytes(envelope.build())


class Users(UsernameTokenValidator):
    """Knows one user, and accepts only digests. An eavesdropper cannot use a digest a second time."""

    nonce_ttl = 600  # seconds: how long a token is accepted if its clock is five minutes ahead

    def __init__(self, settings):
        super().__init__()
        self.settings, self.lock = settings, threading.Lock()

    def get_password(self, username):
        return self.settings.password if username == self.settings.username else None

    def validate(self, security_element):
        password, nonce = (security_element.find(f"{TOKEN}/{{{NS.WSSE}}}{name}") for name in ("Password", "Nonce"))
        if password is not None and password.get("Type") != DIGEST:
            raise SecurityValidationError("it sent its password instead of a digest of it")
        if nonce is not None:  # soapbar compares text, and the same nonce can be written in several ways
            nonce.text = base64.b64encode(base64.b64decode(nonce.text or "")).decode()
        with self.lock:
            return super().validate(security_element)


def refusal(error) -> str:
    """The answer to a client whose token was refused: the reason, but not whether the user exists."""
    text = str(error)
    if text.startswith("it sent"):
        return text
    if re.search("wsu:|Timestamp", text) and "requires" not in text:
        return "its clock and the clock of the service differ by more than 5 minutes"
    return "it sent the same token twice" if "already used" in text else "wrong user or password"


class Device:
    """Answers the requests to one camera. May be called in any thread."""

    def __init__(self, settings, camera):
        self.camera, self.users, self.points = camera, Users(settings), pull_points.PullPoints()
        self.token = camera.name[:64]
        self.version = Gst.Registry.get().find_plugin("cudavision").get_version()
        self.warned = -PATIENCE  # when the last warning about a client was written
        self.actions = {
            messages.tag("trt", "GetStreamUri"): self.stream_uri,
            messages.tag("tev", "CreatePullPointSubscription"): self.create,
            messages.tag("tev", "PullMessages"): self.pull,
            messages.tag("tev", "SetSynchronizationPoint"): self.synchronize,
            messages.tag("wsnt", "Renew"): self.renew,
            messages.tag("wsnt", "Unsubscribe"): self.unsubscribe,
        }

    def answer(self, body: bytes, root: str, path: str) -> tuple[int, str, bytes]:
        """Answers a request. `root` is the address of this device as its client knows it, `path` the rest of the URL.
        Returns the HTTP status, the type and the content. Never raises."""
        request = None
        try:
            tree = parse_xml(body)
            if tree.getroottree().docinfo.internalDTD is not None:
                raise fault("a message must not contain a DTD", "ter:WellFormed")
            request = SoapEnvelope.from_xml(tree)
            return write(request, self.carry_out(request, root, path))
        except SoapFault as error:
            return write(request, error)
        except (ValueError, TypeError, SyntaxError):
            return write(request, fault("the message is not valid SOAP", "ter:WellFormed"))
        except Exception as error:  # an error in this program must not end the connection without an answer
            log.error("%s: onvif: %s: %s", self.camera.name, type(error).__name__, error)
            return write(request, fault("an error in the service", code="Server"))

    def carry_out(self, envelope, root, path):
        """The body of the answer. Raises a SoapFault."""
        for block in envelope.header_blocks:
            if block.must_understand and not str(block.element.tag).startswith((f"{{{NS.WSA}}}", f"{{{NS.WSSE}}}")):
                raise SoapFault("MustUnderstand", f"the header {block.element.tag} is not understood")
        request = envelope.first_body_element
        if request is None:
            raise fault("the message has no body", "ter:WellFormed")
        name, known = str(request.tag), f"{request.tag}Response" in messages.ANSWERS
        short = name.rpartition("}")[2][:64]
        if not known or short not in EVERYBODY:
            self.admit(envelope.ws_security_element)
        if not known:
            text = f"Optional Action Not Implemented: {short} is not implemented"
            raise fault(text, "ter:ActionNotSupported", code="Server")
        if messages.text_of(request, "trt", "ProfileToken") not in ("", self.token):
            raise fault(f"there is only the profile {self.token}", "ter:InvalidArgVal", "ter:NoProfile")
        to = (envelope.ws_addressing and envelope.ws_addressing.to) or ""
        values = {"root": root, "key": (path if "/subscription/" in path else to).rpartition("/")[2], **self.facts()}
        try:
            values.update(self.actions[name](request, values["key"]) if name in self.actions else {})
        except pull_points.Gone:
            raise fault("there is no such subscription, or it has ended", "ter:InvalidArgVal",
                        "wsrf:ResourceUnknownFault")
        answer = messages.fill(f"{name}Response", values)
        for each in values.get("found", ()):
            answer.append(messages.fill(messages.tag("wsnt", "NotificationMessage"), {**each, "token": self.token}))
        return answer

    def admit(self, security):
        """Raises a SoapFault if the request is not from a known user."""
        try:
            if security is None:
                raise SecurityValidationError("it sent no user")
            self.users.validate(security)
        except (SecurityValidationError, ValueError, TypeError) as error:
            reason = refusal(error)
            if time.monotonic() - self.warned >= PATIENCE:
                self.warned = time.monotonic()
                log.warning("%s: onvif: a client was refused: %s", self.camera.name, reason)
            raise fault(f"Sender not Authorized: {reason}", "ter:NotAuthorized") from error

    def facts(self):
        """The values that answers contain."""
        caps = self.camera.sink.get_static_pad("sink").get_current_caps() if self.camera.sink else None
        size = size_of_caps(caps) if caps else UNKNOWN_SIZE
        return {
            "now": pull_points.now(),
            "most": pull_points.MOST,
            "version": self.version,
            "host": socket.gethostname(),
            "name": self.camera.name,
            "title": "".join(filter(str.isprintable, self.camera.settings.title))[:64],  # allowed in XML and ONVIF
            "token": self.token,
            "width": size[0],
            "height": size[1],
        }

    def stream_uri(self, *_):
        uri = uris.opened(self.camera.settings.uri)
        if uris.path_of(uri) is not None:
            raise fault("this camera has no address on the network", "ter:IncompleteConfiguration", code="Server")
        user = uris.user_of(uri)
        uri = uri.replace(f"{user}@", "", 1) if user else uri
        if "@" in uri:
            text = "the address of this camera and its password cannot be told apart"
            raise fault(text, "ter:IncompleteConfiguration", code="Server")
        return {"uri": uri}

    def create(self, request, _):
        if request.find(".//{*}MessageContent") is not None:
            raise fault("content filters are not supported", "wsnt:InvalidFilterFault")
        if not messages.wants_motion(request):
            text = f"the only topic is tns1:{messages.TOPIC}"
            raise fault(text, "wsnt:InvalidFilterFault", "wsnt:TopicNotSupportedFault")
        life = self.life_of(request, "tev", "InitialTerminationTime", "wsnt:UnacceptableInitialTerminationTimeFault")
        try:
            key, left = self.points.create(life)
        except pull_points.Full:
            text = f"there are {pull_points.MOST} subscriptions; unsubscribe, or wait until some of them expire"
            raise fault(text, "wsnt:SubscribeCreationFailedFault", code="Server") from None
        return {"key": key, **messages.times(pull_points.now(), left)}

    def pull(self, request, key):
        try:
            wait = messages.seconds_of(messages.text_of(request, "tev", "Timeout"), pull_points.now())
            limit = int(messages.text_of(request, "tev", "MessageLimit"))
        except ValueError:
            limit = 0
        if limit < 1:
            raise fault("Timeout must be a duration, and MessageLimit 1 or more", "ter:InvalidArgVal")
        found, left = self.points.pull(key, wait, limit)
        rows = [
            {"operation": operation, "motion": str(motion).lower(), "time": messages.stamp(at)}
            for operation, motion, at in found
        ]
        return {"found": rows, **messages.times(pull_points.now(), left)}

    def synchronize(self, _, key):
        self.points.synchronize(key)
        return {}

    def renew(self, request, key):
        life = self.life_of(request, "wsnt", "TerminationTime", "wsnt:UnacceptableTerminationTimeFault")
        return messages.times(pull_points.now(), self.points.renew(key, life))

    def unsubscribe(self, _, key):
        self.points.remove(key)
        return {}

    @staticmethod
    def life_of(request, prefix, name, subcode) -> float:
        """The requested lifetime of a subscription in seconds."""
        try:
            text = messages.text_of(request, prefix, name)
            life = messages.seconds_of(text, pull_points.now()) if text else pull_points.LONGEST
        except ValueError:
            life = 0
        if life <= 0:
            raise fault(f"{name} must be a duration, such as PT60S, or a future time", subcode)
        return life


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60

    def log_message(self, *_):
        pass

    def send(self, status, kind, content):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        if status in (411, 413):  # the rest is not a request
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        self.wfile.write(content)

    def do_POST(self):
        length, host = self.headers.get("Content-Length", ""), self.headers.get("Host", "")
        if not re.fullmatch("[0-9]{1,18}", length):
            return self.send(411, "text/plain", b"the request must have a Content-Length\n")
        if int(length) > LARGEST:
            return self.send(413, "text/plain", b"the request is too large\n")
        body = self.rfile.read(int(length))
        if not re.fullmatch(r"[A-Za-z0-9_.:\[\]-]{1,255}", host):
            host = "{}:{}".format(*self.connection.getsockname()[:2])
        return self.send(*self.server.device.answer(body, f"http://{host}", self.path.partition("?")[0]))


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, address, device):
        super().__init__(address, Handler)
        self.device, self.places = device, threading.Semaphore(CONNECTIONS)

    def process_request(self, request, client_address):
        if self.places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request, client_address):
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.places.release()

    def handle_error(self, request, client_address):
        pass  # a client that disconnects is not an error


class Devices(Listener):
    """The listener that tells each device about the motion of its camera."""

    def __init__(self, settings):
        self.settings, self.devices = settings, {}

    def state(self, camera):
        if device := self.devices.get(camera.name):
            device.points.set(camera.motion)

    def serve(self, cameras):
        """Serves the cameras that have a port, each in threads. Raises a Failure if that is impossible."""
        for camera in cameras:
            if not camera.settings.onvif:
                continue
            device, port = Device(self.settings, camera), camera.settings.onvif
            try:
                server = Server((self.settings.host, port), device)
            except (OSError, OverflowError) as error:
                raise Failure(
                    f"cannot listen on {self.settings.host}:{port}: {getattr(error, 'strerror', error)}"
                ) from error
            self.devices[camera.name] = device
            threading.Thread(target=server.serve_forever, name=f"onvif-{camera.name}", daemon=True).start()
