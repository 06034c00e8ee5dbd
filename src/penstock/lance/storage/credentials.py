"""Short-lived credentials for clients, limited to one table's folder.

Only S3 can issue them: AssumeRole with a session policy. The request is signed here (AWS Signature
4), because an SDK for one call would add a quarter to the server's memory.
"""

import datetime
import hashlib
import hmac
import os
import re
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode, urlsplit
from xml.etree import ElementTree

import msgspec

from penstock.errors import Unavailable

ASK_SECONDS = 10
# Credentials are only given out while they last at least this long.
LEAST_SECONDS = 300
MAX_KEPT = 1_000
READING = ("s3:GetObject",)
WRITING = (*READING, "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload")
# Characters that a policy or a URL does not take literally; locations that the server chooses have
# none.
SPECIAL = re.compile(r"[*?$%#\\]|//|(^|/)\.{1,2}(/|$)")


@dataclass(frozen=True, slots=True)
class Keys:
    """What requests are signed with."""

    id: str
    secret: str
    token: str = ""


class Vendor:
    """Requests credentials, and reuses them while they last."""

    def __init__(
        self, role: str, seconds: int, options: Mapping[str, str], endpoint: str = ""
    ) -> None:
        self._role, self._seconds = role, seconds
        self._options = {name.lower(): text for name, text in options.items()}
        self._region = self._option("region") or self._option("default_region") or "us-east-1"
        self._endpoint = endpoint or f"https://sts.{self._region}.amazonaws.com"
        self._kept: dict[tuple[str, bool], tuple[float, dict[str, str]]] = {}

    def vend(self, location: str, may_write: bool) -> dict[str, str]:
        """Storage options for one table; empty where there are none to give. Blocks."""
        scheme, _, path = location.partition("://")
        bucket, _, key = path.partition("/")
        if scheme != "s3" or not key or key.endswith("/") or SPECIAL.search(path):
            return {}
        kept = self._kept.get((location, may_write))
        if kept is not None and kept[0] - time.time() >= LEAST_SECONDS:
            return kept[1]
        ends, found = self._assume(make_policy(bucket, key, may_write))
        if len(self._kept) >= MAX_KEPT:
            self._kept.clear()
        self._kept[location, may_write] = (ends, found)
        return found

    def _assume(self, policy: str) -> tuple[float, dict[str, str]]:
        # Imported here: they load slowly, and few servers need them.
        form = {
            "Action": "AssumeRole",
            "Version": "2011-06-15",
            "RoleArn": self._role,
            "RoleSessionName": "penstock",
            "DurationSeconds": str(self._seconds),
            "Policy": policy,
        }
        body = urlencode(form).encode()
        now = datetime.datetime.now(datetime.UTC)
        headers = sign(self._endpoint, body, self._keys(), self._region, now)
        request = urllib.request.Request(self._endpoint, body, headers)
        try:
            with urllib.request.urlopen(request, timeout=ASK_SECONDS) as answer:
                return read_answer(answer.read(1024 * 1024))
        except (OSError, SyntaxError, ValueError) as error:
            # The service's answer may repeat the request, including our key's id.
            status = f"{error.code}" if isinstance(error, urllib.error.HTTPError) else "no answer"
            raise Unavailable(
                f"no credentials for this table can be had ({status})",
                detail="check storage.vend_role and that it may be assumed",
            ) from error

    def _keys(self) -> Keys:
        id = self._option("access_key_id") or os.environ.get("AWS_ACCESS_KEY_ID", "")
        secret = self._option("secret_access_key") or os.environ.get("AWS_SECRET_ACCESS_KEY", "")
        token = self._option("session_token") or os.environ.get("AWS_SESSION_TOKEN", "")
        return Keys(id, secret, token)

    def _option(self, name: str) -> str:
        return self._options.get(f"aws_{name}") or self._options.get(name, "")


def make_policy(bucket: str, key: str, may_write: bool) -> str:
    """A session's policy: work below one folder, and list it."""
    arn = f"arn:aws:s3:::{bucket}"
    # With the slash: without it, folders with the same prefix could be listed as well.
    listing = {"StringLike": {"s3:prefix": [f"{key}/*"]}}
    allow = {"Effect": "Allow"}
    actions = list(WRITING if may_write else READING)
    statements = [
        {**allow, "Action": actions, "Resource": f"{arn}/{key}/*"},
        {**allow, "Action": ["s3:ListBucket"], "Resource": arn, "Condition": listing},
    ]
    policy = {"Version": "2012-10-17", "Statement": statements}
    return msgspec.json.encode(policy).decode()


def sign(
    endpoint: str, body: bytes, keys: Keys, region: str, now: datetime.datetime
) -> dict[str, str]:
    """The headers of a signed request to STS."""
    host, date, stamp = urlsplit(endpoint).netloc, now.strftime("%Y%m%d"), _stamp(now)
    headers = {
        "content-type": "application/x-www-form-urlencoded; charset=utf-8",
        "host": host,
        "x-amz-date": stamp,
    }
    if keys.token:
        headers["x-amz-security-token"] = keys.token
    names = ";".join(sorted(headers))
    lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
    request = f"POST\n/\n\n{lines}\n{names}\n{hashlib.sha256(body).hexdigest()}"
    scope = f"{date}/{region}/sts/aws4_request"
    digest = hashlib.sha256(request.encode()).hexdigest()
    text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{digest}"
    key = f"AWS4{keys.secret}".encode()
    for part in (date, region, "sts", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    headers["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={keys.id}/{scope}, SignedHeaders={names}, "
        f"Signature={signature}"
    )
    return headers


def read_answer(content: bytes) -> tuple[float, dict[str, str]]:
    """When the credentials end, and the storage options that contain them."""
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        raise ValueError("the answer is not what STS sends")
    found = {
        element.tag.rpartition("}")[2]: element.text or ""
        for element in ElementTree.fromstring(content).iter()
    }
    try:
        ends = datetime.datetime.fromisoformat(found["Expiration"]).timestamp()
        return ends, {
            "aws_access_key_id": found["AccessKeyId"],
            "aws_secret_access_key": found["SecretAccessKey"],
            "aws_session_token": found["SessionToken"],
            "expires_at_millis": str(int(ends * 1000)),
        }
    except KeyError as error:
        raise ValueError(f"the answer has no {error}") from error


def _stamp(now: datetime.datetime) -> str:
    return now.strftime("%Y%m%dT%H%M%SZ")
