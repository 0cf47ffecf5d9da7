"""Hooks of the schemathesis run: every request is signed as a merchant signs it, over the bytes that leave."""

import hashlib
import hmac
import json
import os

import requests
import schemathesis

KEY = os.environ["PAYBRIDGE_TEST_KEY"]
SECRET = os.environ["PAYBRIDGE_TEST_SECRET"].encode()
# What was agreed with the merchant of the test, laid over the document's schemas by their names.
AGREED = os.environ.get("PAYBRIDGE_TEST_AGREED")


class Signed(requests.auth.AuthBase):
    """requests asks for authentication last, when the body is bytes."""

    def __call__(self, request):
        body = request.body or b""
        if isinstance(body, str):
            body = body.encode()
        request.headers["X-Api-Key"] = KEY
        request.headers["X-Signature"] = hmac.new(SECRET, body, hashlib.sha256).hexdigest()
        return request


schemathesis.auth.set_from_requests(Signed())


@schemathesis.hook
def before_load_schema(context, raw_schema):
    if AGREED:
        with open(AGREED, encoding="utf-8") as file:
            raw_schema["components"]["schemas"].update(json.load(file))
