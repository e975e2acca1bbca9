"""The SDK: one request at a time, no retries of its own, every error classified."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import botocore.session
from awscrt.exceptions import AwsCrtError
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    ProfileNotFound,
)
from botocore.httpsession import create_urllib3_context, get_cert_path
from urllib3.exceptions import HTTPError

from ckptsyncd.errors import Refused, UsageError
from ckptsyncd.stores.clocks import ServerClock
from ckptsyncd.stores.heads import require_whole_heads
from ckptsyncd.stores.lines import Lines, Place, connected
from ckptsyncd.stores.s3.express import Express
from ckptsyncd.stores.s3.faults import OTHERS, classify
from ckptsyncd.stores.s3.identity import identity_of
from ckptsyncd.stores.s3.inbound import Inbound
from ckptsyncd.stores.s3.models import LeanFiles
from ckptsyncd.stores.s3.options import S3Options
from ckptsyncd.stores.s3.sending import SentBody

#: Up to here a body goes out with its headers; larger ones wait for the server's 100-continue, so
#: that a refusal does not cost their bytes (guessed: a round trip's worth at 100 MB/s and 10 ms).
NO_EXPECT_BYTES = 1024 * 1024

#: More connections than there will be hands.
MAX_CONNECTIONS = 128

#: Bytes of one read from an answer.
READ_BYTES = 1024 * 1024


#: The parameters of a request, or its answer, as the SDK has them.
Params = dict[str, Any]


class Wire:
    """Speaks to one bucket. Methods are called from several threads at once.

    There are two clients because signing the payload is a property of a client: ``signed`` hashes
    every body with SHA-256, the other leaves that to TLS or to a checksum that the server checks.
    """

    def __init__(self, bucket: str, options: S3Options) -> None:
        """Look up profile and region; UsageError where they do not exist."""
        self.bucket = bucket
        self._options = options
        self._clients: dict[bool, Any] = {}
        self.clock = ServerClock()
        self._lock = threading.Lock()
        self._session = core = botocore.session.Session(profile=options.profile)
        self._identity = identity_of(core, options.profile)
        try:
            core.get_component("data_loader").file_loader = LeanFiles()
            self._express = Express(self._frozen, lambda place: lines_to(place, core, options))
            self._inbound = Inbound(self._frozen, lambda place: lines_to(place, core, options))
            is_plain = urlsplit(options.endpoint_url or "").scheme == "http"
            self.endpoint = str(self._client(signed=is_plain).meta.endpoint_url)
        except ProfileNotFound as error:
            raise UsageError(
                str(error), hint="see ~/.aws/config, or leave the profile out"
            ) from None
        except CredentialRetrievalError as error:
            hint = "run by hand what gives the credentials (credential_process in ~/.aws/config)"
            raise UsageError(str(error).strip(), hint=hint) from error
        except (ValueError, BotoCoreError) as error:
            msg = f"no S3 client can be made for this destination: {error}"
            raise UsageError(msg, hint="check the endpoint URL and the region") from error
        self.is_https = urlsplit(self.endpoint).scheme == "https"

    def ask(
        self,
        verb: str,
        key: str,
        *,
        sent: SentBody | None = None,
        signed: bool | None = None,
        **parameters: Any,
    ) -> Params:
        """Make one request and return its answer, or raise the store error that it stands for.

        ``key`` is for people. ``signed`` unset: signed where TLS does not protect the request.
        What the body itself raised passes through unchanged. Credentials that were refused are
        looked for anew with the next request: they may have been replaced meanwhile.
        """
        signed = not self.is_https if signed is None else signed
        try:
            answer = self._asked(verb, parameters, sent, signed=signed)
        except (ClientError, BotoCoreError, HTTPError, AwsCrtError, *OTHERS) as error:
            if sent is not None and sent.fault is not None:
                raise sent.fault from None
            found = classify(error, verb, key)
            if isinstance(found, Refused):
                self._identity.forget()
            raise found from error
        if sent is not None and sent.fault is not None:
            raise sent.fault
        return answer

    def _asked(self, verb: str, asked: Params, sent: SentBody | None, *, signed: bool) -> Params:
        """Return the answer to a request, which goes the short way if it can."""
        if sent is not None and not signed:
            answer = self._express.send(verb, asked, sent)
            if answer is not None:
                return {"ETag": answer.headers.get("etag", "")}
        if sent is not None:
            sent.full_key = asked["Key"]
            asked = {**asked, "Body": sent if len(sent) else b""}
        if verb == "get_object":
            if (found := self._inbound.fetch(asked)) is not None:
                return found
            self._inbound.expect(asked["Key"])
        made: Params = getattr(self._client(signed=signed), verb)(Bucket=self.bucket, **asked)
        return made

    @property
    def way(self) -> str:
        """How bodies leave at the moment, for people."""
        return "short" if self._express.is_open else "SDK's"

    def blocks(self, verb: str, key: str, stream: Any) -> Iterator[bytes]:
        """Yield an answer's body; a connection that breaks half-way is classified like any."""
        with closing(stream):
            while True:
                try:
                    block: bytes = stream.read(READ_BYTES)
                except (BotoCoreError, HTTPError, OSError) as error:
                    raise classify(error, verb, key) from error
                if not block:
                    return
                yield block

    def _frozen(self) -> Any:
        return self._session.get_credentials().get_frozen_credentials()

    def _hear(self, response_dict: Any = None, **_: object) -> None:
        """Take in the server's clock from an answer of the SDK's."""
        self.clock.heard((response_dict or {}).get("headers", {}).get("date"))

    def credentials_expire_at(self) -> float | None:
        """Return when credentials from the environment end (AWS_CREDENTIAL_EXPIRATION).

        Every other kind that ends is renewed by the SDK, shortly before it is needed again.
        """
        credentials = self._session.get_credentials()
        if getattr(credentials, "method", "") != "env":
            return None
        expiry = getattr(credentials, "_expiry_time", None)
        return None if expiry is None else float(expiry.timestamp())

    def key_id(self) -> str:
        """Return the id of the access key in use, empty where there are no credentials."""
        try:
            credentials = self._session.get_credentials()
            return "" if credentials is None else str(credentials.access_key or "")
        except (BotoCoreError, HTTPError, RuntimeError):  # expired ones: see Identity
            return ""

    def close(self) -> None:
        """Close every idle connection."""
        with self._lock:
            clients, self._clients = list(self._clients.values()), {}
        for client in clients:
            client.close()
        self._express.close()
        self._inbound.close()

    def _client(self, *, signed: bool) -> Any:
        with self._lock:
            if signed not in self._clients:
                self._clients[signed] = self._make(signed=signed)
            return self._clients[signed]

    def _make(self, *, signed: bool) -> Any:
        options = self._options
        client = self._session.create_client(
            "s3",
            endpoint_url=options.endpoint_url,
            region_name=options.region
            or self._session.get_config_variable("region")
            or "us-east-1",
            config=Config(
                connect_timeout=options.connect_timeout_seconds,
                read_timeout=options.read_timeout_seconds,
                retries={"total_max_attempts": 1},
                max_pool_connections=MAX_CONNECTIONS,
                tcp_keepalive=True,
                user_agent_extra="ckptsyncd",
                signature_version="s3v4",
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
                s3={"payload_signing_enabled": signed, "addressing_style": self._addressing()},
            ),
        )
        # The pools of proxies are made from the same classes.
        require_whole_heads(client._endpoint.http_session._pool_classes_by_scheme)  # noqa: SLF001
        client.meta.events.register("response-received.s3", self._hear)
        if options.stay_in_region:
            home = str(client.meta.region_name)
            client.meta.events.register("before-sign.s3", partial(_stay, home))
        client.meta.events.register("before-send.s3.GetObject", self._inbound.show)
        for operation in ("PutObject", "UploadPart"):
            if not signed:
                client.meta.events.register(f"before-send.s3.{operation}", self._show)
            client.meta.events.register(f"before-send.s3.{operation}", _send_in_large_blocks)
        return client

    def _show(self, request: Any, **_: object) -> None:
        """Show the short way where the SDK goes."""
        if isinstance(request.body, SentBody):
            authorization = request.headers.get("Authorization", "")
            if isinstance(authorization, bytes):
                authorization = authorization.decode()
            self._express.learn(request.url, authorization, request.body.full_key)

    def _addressing(self) -> str:
        path_style = self._options.path_style
        if path_style is None:
            path_style = self._options.endpoint_url is not None
        return "path" if path_style else "auto"


def lines_to(place: Place, core: botocore.session.Session, options: S3Options) -> Lines:
    """Return the connections to a place, which trust whom the SDK trusts."""
    context = None
    if place.is_tls:
        context = create_urllib3_context()
        context.load_verify_locations(get_cert_path(core.get_config_variable("ca_bundle") or True))
    connect, read = options.connect_timeout_seconds, options.read_timeout_seconds
    return Lines(place, lambda: connected(place, context, connect, read))


def _stay(home: str, request: Any, **_: object) -> None:
    """Refuse to sign for another region: the SDK follows redirects by signing anew."""
    region = request.context.get("signing", {}).get("region", home)
    if region != home:
        msg = f"the store sends us to region {region}, and the rules keep us in {home}"
        raise Refused(msg, hint="name the bucket's own region with --s3-region")


def _send_in_large_blocks(request: Any, **_: object) -> None:
    """Exchange a signed request's body for its blocks just before it is sent."""
    body = request.body
    if isinstance(body, SentBody):
        request.body = body.blocks()
        if len(body) <= NO_EXPECT_BYTES:
            request.headers.pop("Expect", None)
