# SPDX-License-Identifier: LGPL-2.1-or-later
"""Prometheus metrics over HTTP, with prometheus_client. They are read from the cameras on each request."""

from common import CHANGES, Failure
from config import CONDITIONS

try:
    import prometheus_client
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
except ImportError:
    prometheus_client = None


class Collector:
    """Returns the metrics of the cameras, the wall and the connection to the broker. The only label is the key of a
    camera."""

    def __init__(self, cameras, wall, publisher):
        self.cameras, self.wall, self.publisher = cameras, wall, publisher

    def collect(self):
        for kind, name, text, value in (
            (CounterMetricFamily, "frames", "Frames that cudadiff has analysed.", lambda camera: camera.frames),
            (GaugeMetricFamily, "fps", "Frames in the last second.", lambda camera: camera.fps),
            (GaugeMetricFamily, "up", "Whether frames arrive.", lambda camera: camera.up),
            (GaugeMetricFamily, "enabled", "Whether it is switched on.", lambda camera: camera.enabled),
            (GaugeMetricFamily, "motion", "Whether there is motion.", lambda camera: camera.motion),
            (
                GaugeMetricFamily,
                "objects",
                "Objects in view, or in zones if there are zones.",
                lambda camera: camera.objects,
            ),
            (
                CounterMetricFamily,
                "reconnects",
                "Attempts to reconnect after the camera was lost.",
                lambda camera: camera.reconnects,
            ),
        ):
            family = kind(f"cudavision_camera_{name}", text, labels=["camera"])
            for camera in self.cameras:
                family.add_metric([camera.name], float(value(camera)))
            yield family
        dropped = CounterMetricFamily(
            "cudavision_camera_dropped", "Frames that were skipped, by place.", labels=["camera", "stage"]
        )
        for camera in self.cameras:
            for stage in ("encoded", "decoded"):
                dropped.add_metric([camera.name, stage], camera.pace.dropped[stage])
        yield dropped
        events = CounterMetricFamily("cudavision_camera_events", "Events by name.", labels=["camera", "event"])
        for camera in self.cameras:
            watched = CONDITIONS if camera.settings.watch else ()
            for name in (*CHANGES, *watched):
                events.add_metric([camera.name, name], camera.events[name])
        yield events
        watch = GaugeMetricFamily(
            "cudavision_camera_watch", "Whether the picture has this condition.", labels=["camera", "condition"]
        )
        for camera in self.cameras:
            for condition in CONDITIONS if camera.settings.watch else ():
                watch.add_metric([camera.name, condition], float(condition in list(camera.conditions)))
        yield watch
        recorders = [(camera.name, camera.recorder) for camera in self.cameras if camera.recorder]
        for name, text, value in (
            ("clips", "Clips that were written.", lambda recorder: recorder.written_clips),
            (
                "clip_failures",
                "Clips that could not be written, or are incomplete.",
                lambda recorder: recorder.failures,
            ),
        ):
            family = CounterMetricFamily(f"cudavision_camera_{name}", text, labels=["camera"])
            for camera, recorder in recorders:
                family.add_metric([camera], value(recorder))
            yield family
        if self.wall:
            yield CounterMetricFamily("cudavision_wall_frames", "Frames of the wall.", value=self.wall.frames)
            yield GaugeMetricFamily("cudavision_wall_up", "Whether the wall has frames.", value=float(self.wall.up))
        if self.publisher:
            yield GaugeMetricFamily(
                "cudavision_mqtt_connected",
                "Whether there is a connection to the broker.",
                value=float(self.publisher.connected),
            )


def check():
    if prometheus_client is None:
        raise Failure("[metrics] needs python3-prometheus-client, which is not installed")


def serve(settings, cameras, wall, publisher):
    prometheus_client.REGISTRY.register(Collector(cameras, wall, publisher))
    try:
        prometheus_client.start_http_server(settings.port, settings.host)
    except OSError as error:
        raise Failure(f"cannot listen on {settings.host}:{settings.port}: {error.strerror}") from error
