# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests the answers of an ONVIF device: users, hostile messages, streams and subscriptions."""

import base64
import datetime
import socket
import types
import unittest
from unittest import mock

from helpers import SECRET
from onvif_words import EVENTS, GET_PROFILES, GET_TIME, MEDIA, MISSING, PASSWORD, SOAP_11, SOAP_12, WSSE
from onvif_words import envelope, token

import common
import pull_points

common.Gst.init(None)
try:
    import onvif_device
    import onvif_messages
except ImportError:
    onvif_device = None


@unittest.skipUnless(onvif_device, MISSING)
class Messages(unittest.TestCase):
    def test_seconds(self):
        now = datetime.datetime(2026, 5, 1, 12, tzinfo=datetime.timezone.utc)
        for text, expected in {
            "PT60S": 60, "PT1M": 60, "PT0S": 0, "P1DT1H1M1.5S": 90061.5, "2026-05-01T12:01:00": 60,
            "2026-05-01T12:01:00Z": 60, "2026-05-01T14:01:00+02:00": 60, "2026-05-01T11:00:00.000Z": -3600,
        }.items():
            self.assertEqual(expected, onvif_messages.seconds_of(text, now), text)
        for text in ("", "P", "PT", "P1", "-PT5S", "PT1X", "1M", "60", "PTS", "P1Y", "PT9999999S", "soon", "PT१S"):
            with self.subTest(text), self.assertRaises(ValueError):
                onvif_messages.seconds_of(text, now)

    def test_filters(self):
        for text, expected in {
            None: True, "tns1:RuleEngine/CellMotionDetector/Motion": True, "x:RuleEngine//.": True,
            "tns1:RuleEngine/CellMotionDetector//.": True, "tns1:VideoSource//.|tns1:RuleEngine//.": True,
            "tns1:RuleEngine/tns1:CellMotionDetector/tns1:Motion": True, "tns1:VideoSource//. | tns1:Device//.": False,
            "tns1:RuleEngine/CellMotionDetector": False, "tns1:Rule//.": False, "tns1:VideoSource/MotionAlarm": False,
        }.items():
            request = onvif_messages.etree.Element("Filter")
            if text is not None:
                onvif_messages.etree.SubElement(request, onvif_messages.tag("wsnt", "TopicExpression")).text = text
            self.assertEqual(expected, onvif_messages.wants_motion(request), text)


@unittest.skipUnless(onvif_device, MISSING)
class Device(unittest.TestCase):
    def setUp(self):
        settings = types.SimpleNamespace(title="Door", uri=f"rtsp://me:{SECRET}@host/x?a=1#every=2")
        self.camera = types.SimpleNamespace(name="door", sink=None, motion=False, settings=settings)
        self.device = onvif_device.Device(types.SimpleNamespace(username="me", password=PASSWORD), self.camera)

    def ask(self, content, path="/onvif/device_service"):
        status, _, answer = self.device.answer(content, "http://host:1", path)
        return status, answer.decode()

    def call(self, body, path="/onvif/event_service"):
        """The answer to a request of the user."""
        return self.ask(envelope(body, token()), path)

    def test_users(self):
        self.assertEqual(200, self.ask(envelope(GET_PROFILES, token()))[0])
        self.assertEqual(200, self.ask(envelope(GET_PROFILES, token(late=280)))[0])
        self.assertEqual(200, self.ask(envelope(GET_TIME))[0])
        clock, wrong = "clock", "wrong user or password"
        with self.assertLogs("motion-alarm", "WARNING") as logged:
            for header, expected in {
                token(password="other"): wrong,
                token(user="other"): wrong,
                token(user=""): wrong,
                token().replace("<w:Nonce>", "<w:Nonce>AAAA"): wrong,
                token().replace("<w:Nonce>", "<w:Nonce>A"): wrong,
                token().replace("Digest</w", "x").replace("Digest\">", "Digest\">ü"): wrong,
                token(late=900): clock,
                token(late=-900): clock,
                token(text=True): "it sent its password",
                token().replace("#PasswordDigest", "#Password"): "it sent its password",
                "": "it sent no user",
                f'<s:Header><w:Security xmlns:w="{WSSE}"/></s:Header>': wrong,
            }.items():
                status, answer = self.ask(envelope(GET_PROFILES, header))
                self.assertEqual(400, status, answer)
                self.assertIn(f"Sender not Authorized: {expected}"[:60], answer.replace("its clock", "clock"))
                self.assertIn(":NotAuthorized<", answer)
                self.assertNotIn(SECRET, answer)
        self.assertEqual(["WARNING:motion-alarm:door: onvif: a client was refused: wrong user or password"],
                         logged.output)  # at most one per minute

    def test_replays(self):
        """Repeats a token: unchanged, with its nonce written differently, and after an element that does not belong to
        it."""
        nonce = bytes(range(16))
        header = token(nonce=nonce)
        self.assertEqual(200, self.ask(envelope(GET_PROFILES, header))[0])
        word = base64.b64encode(nonce).decode()
        for other in (word, f" {word}", f"{word[:4]}\n{word[4:]}", f"{word}****"):
            for decoy in ("", f'<x><w:Nonce xmlns:w="{WSSE}">AAAA</w:Nonce></x>'):
                again = header.replace(word, other).replace("<w:UsernameToken>", f"{decoy}<w:UsernameToken>")
                status, answer = self.ask(envelope(GET_PROFILES, again))
                self.assertEqual(400, status, other)
                self.assertIn("it sent the same token twice", answer)

    def test_a_token_of_a_clock_that_is_ahead(self):
        """Such a token is valid for up to ten minutes, so its nonce must be remembered for this time."""
        header = token(late=-290)
        self.assertEqual(200, self.ask(envelope(GET_PROFILES, header))[0])
        past = {key: end - datetime.timedelta(seconds=301) for key, end in self.device.users._seen_nonces.items()}
        self.device.users._seen_nonces = past
        self.assertIn("it sent the same token twice", self.ask(envelope(GET_PROFILES, header))[1])

    def test_hostile_messages(self):
        bomb = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10 if n else "x" * 1000}">' for n in range(10))
        deep = "<a>" * 10000 + "</a>" * 10000
        doctype = '<!DOCTYPE s [<!ENTITY x SYSTEM "file:///etc/hostname">]>'
        right = envelope(GET_TIME).decode()
        for content, status in {
            b"": 400, b"no XML": 400, b"<a/>": 500,  # no version of SOAP
            right[:-5].encode(): 400,
            f"<!DOCTYPE s [{bomb}]>{right}".replace("<s:Body>", "<s:Body>&e9;").encode(): 400,
            f"<!DOCTYPE s [{bomb}]>{right}".replace("<s:Body>", "<s:Body a='&e9;'>").encode(): 400,
            f"{doctype}{right.replace('<GetS', '&x;<GetS')}".encode(): 400,
            f"<!DOCTYPE s>{right}".encode(): 400,
            f'<?xml version="1.0" encoding="UTF-16"?>{doctype}{right}'.encode("utf-16"): 400,
            envelope(deep): 400, envelope(""): 400, envelope("text"): 400,
            envelope(GET_TIME, "<s:Header><x s:mustUnderstand='1'/></s:Header>"): 500,
            envelope(GET_TIME, "<s:Header/><s:Header/>"): 400,
            envelope(GET_TIME, namespace="urn:other"): 500,
            right.replace("</s:Envelope>", "<s:Body/></s:Envelope>").encode(): 400,
            bytes(range(256)): 400, b"\xff\xfe" + b"<" * 1001: 400,
        }.items():
            found, answer = self.ask(content)
            self.assertEqual(status, found, (content[:200], answer))
            self.assertIn("Fault>", answer)
            self.assertNotIn(socket.gethostname(), answer)

    def test_both_versions(self):
        for namespace, status in ((SOAP_11, 500), (SOAP_12, 400)):
            found, answer = self.ask(envelope(GET_TIME, namespace=namespace))
            self.assertEqual(200, found)
            self.assertIn(f'"{namespace}"', answer)
            found, answer = self.ask(envelope(GET_PROFILES, namespace=namespace))
            self.assertEqual(status, found)
            self.assertIn(f'"{namespace}"', answer)

    def test_addressing(self):
        action = f"{EVENTS}/EventPortType/GetEventProperties"
        space = 'xmlns:a="http://www.w3.org/2005/08/addressing"'
        header = token().replace("</s:Header>", f'<a:Action {space} s:mustUnderstand="1">{action}Request</a:Action>'
                                 f"<a:MessageID {space}>urn:7</a:MessageID></s:Header>")
        answer = self.ask(envelope(f'<GetEventProperties xmlns="{EVENTS}"/>', header))[1]
        self.assertIn(f"{action}Response<", answer)
        self.assertRegex(answer, "RelatesTo[^>]*>urn:7<")
        answer = self.ask(envelope("<x/>", header))[1]
        self.assertIn("addressing/fault<", answer)
        self.assertRegex(answer, "RelatesTo[^>]*>urn:7<")

    def test_titles(self):
        for title, expected in {"Door {root} <&": "Door {root} &lt;&amp;", "Tür\x01\n\ufffe": "Tür",
                                "x" * 100: "x" * 64, "{": "{"}.items():
            self.camera.settings.title = title
            status, answer = self.call(GET_PROFILES)
            self.assertEqual(200, status, answer)
            self.assertIn(f"<tt:Name>{expected}</tt:Name>", answer)

    def test_streams(self):
        ask = f'<GetStreamUri xmlns="{MEDIA}"><ProfileToken>%s</ProfileToken></GetStreamUri>'
        for uri, expected in {
            self.camera.settings.uri: ">rtsp://host/x?a=1<",
            f"http://me:#{SECRET}%@@[::1]:8/y#certificate=any": ">http://[::1]:8/y<",
            **dict.fromkeys((f"http://a#b:{SECRET}@host/y", f"rtsp://host:554/a@{SECRET}"),
                            "the address of this camera and its password cannot be told apart"),
            "rtsp://host/": ">rtsp://host/<",
            **dict.fromkeys(("test", "/dev/video0", "/clips/a.mp4"), "has no address on the network"),
        }.items():
            self.camera.settings.uri = uri
            answer = self.call(ask % "door")[1]
            self.assertIn(expected, answer)
            self.assertNotIn(SECRET, answer)
        self.assertIn("there is only the profile door", self.call(ask % "yard")[1])

    def test_subscriptions(self):
        def create(inside=""):
            body = f'<CreatePullPointSubscription xmlns="{EVENTS}">{inside}</CreatePullPointSubscription>'
            return self.call(body)[1]

        def pull(inside, key):
            return self.call(f'<PullMessages xmlns="{EVENTS}">{inside}</PullMessages>', f"/onvif/subscription/{key}")[1]

        key = create().partition("http://host:1/onvif/subscription/")[2].partition("<")[0]
        asked = "<Timeout>PT0S</Timeout><MessageLimit>5</MessageLimit>"
        self.assertIn('PropertyOperation="Initialized"', pull(asked, key))
        self.assertIn("there is no such subscription", pull(asked, "x"))
        self.assertIn("there is no such subscription", pull(asked, ""))
        for wrong in ("", asked.replace("PT0S", "1"), asked.replace("5", "0"), asked.replace("5", "x" * 9999)):
            self.assertIn("Timeout must be a duration", pull(wrong, key))
        self.assertIn("the only topic is", create(
            '<Filter><w:TopicExpression xmlns:w="http://docs.oasis-open.org/wsn/b-2">a:B</w:TopicExpression></Filter>'))
        self.assertIn("are not supported", create("<Filter><MessageContent>x</MessageContent></Filter>"))
        for text in ("PT0S", "now", "2020-01-01T00:00:00Z"):
            self.assertIn("InitialTerminationTime must be", create(
                f"<InitialTerminationTime>{text}</InitialTerminationTime>"))
        for _ in range(pull_points.MOST - 1):
            self.assertIn("TerminationTime", create("<InitialTerminationTime>P1D</InitialTerminationTime>"))
        self.assertIn("there are 16 subscriptions", create())

    def test_an_error_in_the_service(self):
        with mock.patch.object(self.device, "facts", side_effect=ZeroDivisionError), self.assertLogs("motion-alarm"):
            status, answer = self.ask(envelope(GET_TIME))
        self.assertEqual(500, status)
        self.assertIn("an error in the service", answer)


if __name__ == "__main__":
    unittest.main()
