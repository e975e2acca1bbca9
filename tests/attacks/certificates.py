"""Certificates for a server on loopback: one that holds, and one whose time is over."""

from __future__ import annotations

import datetime as dt
import ssl
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = dt.timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Authority:
    """Signs certificates; ``trusted`` is the file of what a client has to trust."""

    folder: Path
    key: ec.EllipticCurvePrivateKey
    name: x509.Name

    @property
    def trusted(self) -> Path:
        """The authority's own certificate."""
        return self.folder / "authority.pem"

    def context(self, host: str, ends: dt.timedelta) -> ssl.SSLContext:
        """Return what a server needs whose certificate ends so long from now."""
        key = ec.generate_private_key(ec.SECP256R1())
        signed = self.signed(_named(host), key, ends, x509.SubjectAlternativeName([_dns(host)]))
        kept = self.folder / f"{host}{ends.days}.pem"
        kept.write_bytes(_pem(key) + signed)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(kept)
        return context

    def signed(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        ends: dt.timedelta,
        extension: x509.ExtensionType,
    ) -> bytes:
        """Return a certificate for a key, as text."""
        now = dt.datetime.now(dt.timezone.utc)
        whose = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        made = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 30 * DAY)
            .not_valid_after(now + ends)
            .add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
            .add_extension(whose, critical=False)
            .add_extension(signer, critical=False)
            .sign(self.key, hashes.SHA256())
        )
        return made.public_bytes(serialization.Encoding.PEM)


def authority(folder: Path) -> Authority:
    """Make an authority of our own."""
    made = Authority(folder, ec.generate_private_key(ec.SECP256R1()), _named("tests"))
    basic = x509.BasicConstraints(ca=True, path_length=0)
    made.trusted.write_bytes(made.signed(made.name, made.key, 30 * DAY, basic))
    return made


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _dns(host: str) -> x509.GeneralName:
    return x509.DNSName(host)


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
