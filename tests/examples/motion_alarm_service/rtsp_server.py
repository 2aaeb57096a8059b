# SPDX-License-Identifier: LGPL-2.1-or-later
"""An RTSP camera:  rtsp_server.py PORT COLOR. It serves rtsp://me:secret@127.0.0.1:PORT/camera, a ball on a background
of 0xAARRGGBB, at 10 frames per second and 320x240. It prints a line when it listens, and ends with its stdin. Status 77
without GStreamer's RTSP server."""

import sys

import gi

try:
    gi.require_version("Gst", "1.0")
    gi.require_version("GstRtspServer", "1.0")
    from gi.repository import GLib, Gst, GstRtspServer
except (ImportError, ValueError):
    sys.exit(77)

port, color = sys.argv[1], int(sys.argv[2], 0)
Gst.init(None)
server = GstRtspServer.RTSPServer(address="127.0.0.1", service=port)
factory = GstRtspServer.RTSPMediaFactory(shared=True)
factory.set_launch(
    f"( videotestsrc is-live=true pattern=ball background-color={color} "
    "! video/x-raw,format=I420,width=320,height=240,framerate=10/1 "
    "! jpegenc ! rtpjpegpay name=pay0 )")
permissions = GstRtspServer.RTSPPermissions()
for name in ("access", "construct"):
    permissions.add_permission_for_role("user", f"media.factory.{name}", True)
factory.set_permissions(permissions)
token, auth = GstRtspServer.RTSPToken(), GstRtspServer.RTSPAuth()
token.set_string("media.factory.role", "user")
auth.add_basic(GstRtspServer.RTSPAuth.make_basic("me", "secret"), token)
server.set_auth(auth)
server.get_mount_points().add_factory("/camera", factory)
if not server.attach(None):
    sys.exit(f"cannot listen on port {port}")
print("ready", flush=True)
GLib.io_add_watch(0, GLib.PRIORITY_DEFAULT, GLib.IOCondition.HUP, lambda *_: sys.exit(0))
GLib.MainLoop().run()
