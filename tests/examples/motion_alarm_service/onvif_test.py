# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests the service with ONVIF clients: Home Assistant's, and hostile ones."""

import asyncio
import datetime
import http.client
import socket
import sys
import unittest

from helpers import HANGS, Case, free_port, listens, taken_port, the_clip, wait_for
from onvif_words import GET_TIME, MISSING, PASSWORD, envelope

try:
    import onvif_device
    import onvif_parsers
    from onvif import ONVIFCamera
    from onvif.util import is_auth_error
    from zeep.exceptions import Fault
except ImportError:
    ONVIFCamera = None


@unittest.skipUnless(ONVIFCamera, MISSING)
class Onvif(Case):
    def start(self, *uris):
        self.ports = [free_port() for _ in uris]
        tables = f"[onvif]\nusername = 'me'\npassword = '''{PASSWORD}'''\n" + "".join(
            f"[camera.c{port}]\ntitle = 'Camera <&'\nuri = '{uri}'\nonvif = {port}\n"
            for uri, port in zip(uris, self.ports))
        service = self.service(tables, prefix=[sys.executable])
        wait_for("it listens", lambda: listens(self.ports[-1]))
        return service

    def run_client(self, work, port, password=PASSWORD):
        async def whole():
            client = ONVIFCamera("127.0.0.1", port, "me", password)
            try:
                await client.update_xaddrs()
                return await work(client)
            finally:
                await client.close()

        return asyncio.run(asyncio.wait_for(whole(), HANGS))

    def test_what_home_assistant_asks(self):
        """Home Assistant's steps for configuration, then its steps at start."""
        self.start("test")
        port = self.ports[0]

        async def work(client):
            device = await client.create_devicemgmt_service()
            with self.assertRaises(Fault) as raised:
                await device.GetNetworkInterfaces()
            self.assertIn("not implemented", raised.exception.message)
            information = await device.GetDeviceInformation()
            self.assertEqual(f"{socket.gethostname()}-c{port}", information.SerialNumber)
            self.assertEqual(("cudavision", "motion-alarm-service"), (information.Manufacturer, information.Model))
            media = await client.create_media_service()
            (profile,) = await media.GetProfiles()
            self.assertEqual(("Camera <&", "H264"), (profile.Name, profile.VideoEncoderConfiguration.Encoding))
            self.assertEqual(profile.token, profile.VideoSourceConfiguration.SourceToken)
            self.assertFalse((await media.GetServiceCapabilities()).SnapshotUri)
            self.assertEqual([f"c{port}"], [each.token for each in await media.GetVideoSources()])
            self.assertTrue((await client.get_capabilities())["Events"]["WSPullPointSupport"])
            self.assertEqual(3, len(await device.GetServices({"IncludeCapability": True})))
            self.assertTrue((await device.GetServiceCapabilities()).Security.UsernameToken)
            date = (await device.GetSystemDateAndTime()).UTCDateTime.Date
            today = datetime.datetime.now(datetime.timezone.utc)
            self.assertLessEqual(abs(datetime.date(date.Year, date.Month, date.Day) - today.date()).days, 1)
            self.assertEqual(socket.gethostname(), (await device.GetHostname()).Name)
            self.assertIn(f"onvif://www.onvif.org/name/c{port}", [each.ScopeItem for each in await device.GetScopes()])
            events = await client.create_events_service()
            self.assertTrue((await events.GetServiceCapabilities()).WSPullPointSupport)
            engine = (await events.GetEventProperties()).TopicSet._value_1[0]
            self.assertEqual("{http://www.onvif.org/ver10/topics}RuleEngine", engine.tag)
            motion = engine.find("CellMotionDetector/Motion")
            self.assertEqual("true", motion.get("{http://docs.oasis-open.org/wsn/t-1}topic"))

        self.run_client(work, port)

        async def refused(client):
            with self.assertRaises(Fault) as raised:
                await (await client.create_media_service()).GetProfiles()
            self.assertTrue(is_auth_error(raised.exception))

        self.run_client(refused, port, "wrong")

    def test_motion(self):
        """A clip with motion, which begins repeatedly."""
        service = self.start(the_clip())

        async def work(client):
            manager = await client.create_pullpoint_manager(datetime.timedelta(minutes=10), lambda: None)
            await manager.set_synchronization_point()
            pulls, found = manager.get_service(), []
            while len(found) < 8:
                answer = await pulls.PullMessages({"MessageLimit": 3, "Timeout": datetime.timedelta(seconds=20)})
                self.assertGreater(answer.TerminationTime, answer.CurrentTime)
                self.assertLessEqual(len(answer.NotificationMessage), 3)
                for each in answer.NotificationMessage:
                    topic, message = each.Topic._value_1, each.Message._value_1
                    (entity,) = await onvif_parsers.parse(topic, "id", each)
                    self.assertEqual(("motion", f"id_{topic}_c{client.port}_c{client.port}_cudadiff"),
                                     (entity.device_class, entity.uid))
                    found.append((message.PropertyOperation, entity.value))
            renewed = await manager._subscription.Renew("PT600S")
            self.assertGreater(renewed.TerminationTime, renewed.CurrentTime)
            await manager.shutdown()
            with self.assertRaises(Fault) as raised:
                await pulls.PullMessages({"MessageLimit": 3, "Timeout": datetime.timedelta(seconds=0)})
            self.assertIn("no such subscription", raised.exception.message)
            return found

        found = self.run_client(work, self.ports[0])
        self.assertEqual("Initialized", found[0][0])
        changes = [value for operation, value in found if operation == "Changed"]
        self.assertGreaterEqual(len(changes), 6)
        self.assertEqual([changes[0] ^ (index % 2 == 1) for index in range(len(changes))], changes)
        first = next(index for index, (operation, _) in enumerate(found) if operation == "Changed")
        self.assertNotEqual(found[first - 1][1], changes[0])  # a change differs from the previous state
        self.assertEqual(0, service.stop())

    def test_hostile_clients(self):
        """Clients that send half a request occupy all connections of a camera. Its motion continues, and so do the
        other cameras."""
        service = self.start(the_clip(), "test")
        held, other = self.ports
        clients = [socket.create_connection(("127.0.0.1", held)) for _ in range(onvif_device.CONNECTIONS)]
        for client in clients:
            self.addCleanup(client.close)
            client.sendall(b"POST /onvif/device_service HTTP/1.1\r\nContent-Length: 1000\r\n\r\n<")

        def is_closed():
            with socket.create_connection(("127.0.0.1", held)) as client:
                try:
                    client.sendall(b"x")
                    return client.recv(1) == b""
                except ConnectionError:
                    return True

        wait_for("one more is closed", is_closed)
        before = service.metrics()["camera_events_total", f"c{held}", "begin"]
        service.wait_metric("camera_events_total", f"c{held}", "begin", least=before + 2)
        self.assertEqual(200, self.post(other, envelope(GET_TIME))[0])
        for client in clients:
            client.close()

        def answers():
            try:
                return self.post(held, envelope(GET_TIME))[0] == 200
            except (OSError, http.client.HTTPException):
                return False

        wait_for("it answers again", answers)
        for content, headers, status in ((b"", {"Content-Length": str(10**12)}, 413),
                                         (b"", {"Content-Length": "-1"}, 411),
                                         (b"", {"Transfer-Encoding": "chunked"}, 411), (b"x" * 2**16, {}, 400),
                                         (envelope(GET_TIME), {"Host": "<evil>"}, 200)):
            found, text = self.post(held, content, **headers)
            self.assertEqual(status, found, headers)
            self.assertNotIn("<evil>", text)
        self.assertEqual(501, self.post(held, b"", "GET")[0])

    def post(self, port, content, method="POST", **headers):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=HANGS)
        self.addCleanup(connection.close)
        connection.putrequest(method, "/onvif/device_service", skip_host="Host" in headers)
        if not {"Content-Length", "Transfer-Encoding"} & set(headers):
            headers["Content-Length"] = str(len(content))
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders()
        connection.send(content)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()

    def test_a_port_that_is_taken(self):
        with taken_port() as port:
            service = self.service(
                f"[onvif]\nusername = 'me'\npassword = '''{PASSWORD}'''\n[camera.a]\nuri = 'test'\nonvif = {port}\n",
                prefix=[sys.executable])
            self.assertEqual(1, service.process.wait(HANGS))
            self.assertIn(f"cannot listen on 127.0.0.1:{port}: Address already in use", service.log)


if __name__ == "__main__":
    unittest.main()
