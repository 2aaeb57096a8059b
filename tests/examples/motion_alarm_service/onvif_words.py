# SPDX-License-Identifier: LGPL-2.1-or-later
"""Messages to ONVIF devices, made without the libraries of the device and of its clients."""

import base64
import datetime
import hashlib
import os

from helpers import SECRET

MISSING = "no soapbar or no onvif-zeep-async (WITH=onvif tests/run.sh installs them)"
PASSWORD = f"{SECRET} ü<&"
MEDIA, EVENTS = "http://www.onvif.org/ver10/media/wsdl", "http://www.onvif.org/ver10/events/wsdl"
WSSE = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-secext-1.0.xsd"
WSU = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-utility-1.0.xsd"
PROFILE = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-username-token-profile-1.0"
SOAP_11, SOAP_12 = "http://schemas.xmlsoap.org/soap/envelope/", "http://www.w3.org/2003/05/soap-envelope"
GET_TIME = '<GetSystemDateAndTime xmlns="http://www.onvif.org/ver10/device/wsdl"/>'
GET_PROFILES = f'<GetProfiles xmlns="{MEDIA}"/>'


def token(user="me", password=PASSWORD, late=0.0, nonce=None, text=False, decoy=""):
    """A header with a token whose clock is `late` seconds behind."""
    nonce = os.urandom(16) if nonce is None else nonce
    created = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=late)
    created = created.strftime("%Y-%m-%dT%H:%M:%SZ")
    digest = base64.b64encode(hashlib.sha1(nonce + created.encode() + password.encode()).digest()).decode()
    kind, word = ("Text", password.replace("&", "&amp;").replace("<", "&lt;")) if text else ("Digest", digest)
    return (f'<s:Header><w:Security xmlns:w="{WSSE}" s:mustUnderstand="1">{decoy}<w:UsernameToken>'
            f'<w:Username>{user}</w:Username><w:Password Type="{PROFILE}#Password{kind}">{word}</w:Password>'
            f'<w:Nonce>{base64.b64encode(nonce).decode()}</w:Nonce><u:Created xmlns:u="{WSU}">{created}</u:Created>'
            "</w:UsernameToken></w:Security></s:Header>")


def envelope(body, header="", namespace=SOAP_12):
    return f'<s:Envelope xmlns:s="{namespace}">{header}<s:Body>{body}</s:Body></s:Envelope>'.encode()
