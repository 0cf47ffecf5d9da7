"""Hooks of the schemathesis run: every request is signed as a merchant signs it, over the bytes that leave."""

import hashlib
import hmac
import itertools
import json
import os
import pathlib

import requests
import schemathesis

KEY = os.environ["PAYBRIDGE_TEST_KEY"]
SECRET = os.environ["PAYBRIDGE_TEST_SECRET"].encode()
# Whether every generated request has to be accepted.
ALL_VALID = os.environ.get("PAYBRIDGE_TEST_ALL_VALID") == "1"
HERE = pathlib.Path(__file__).parent


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
    """Lays over the document's schemas, by their names, what it leaves to others.

    agreed.json is what a merchant agrees on with its integration contact. valid.json spells amounts and URLs so that no
    rule which JSON Schema cannot express (two decimal places, hosts) is broken.
    """
    for name in ["agreed.json"] + ["valid.json"] * ALL_VALID:
        raw_schema["components"]["schemas"].update(json.loads((HERE / name).read_text("utf-8")))


_numbers = itertools.count(1)


@schemathesis.hook
def before_call(context, case, kwargs):
    """Where everything has to be accepted: every create is a new order, and integers are spelt as such.

    To JSON Schema 42.0 is an integer; to the interface it is not, and the document says so in words.
    """
    if not ALL_VALID or not isinstance(case.body, dict):
        return
    body = dict(case.body)
    if isinstance(body.get("order_id"), str):
        body["order_id"] = f"{body['order_id'][:240]}~{next(_numbers)}"
    if isinstance(body.get("customer_account_id"), float):
        body["customer_account_id"] = int(body["customer_account_id"])
    case.body = body
