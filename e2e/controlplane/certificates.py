"""The certificate authority of one control plane: its servers and everybody who talks to them.

Kubernetes takes a client certificate's common name for the user and its organizations for the
user's groups.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALIDITY = timedelta(days=365)
CLOCK_SKEW = timedelta(hours=1)


@dataclass(frozen=True)
class Pair:
    """A certificate and its private key, as PEM."""

    certificate: bytes
    key: bytes


def private_key() -> ec.EllipticCurvePrivateKey:
    """A fresh key; elliptic curves, because RSA would cost a second of start-up."""
    return ec.generate_private_key(ec.SECP256R1())


def private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """The key as PEM, unencrypted: it lives as long as the state folder."""
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def public_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """The public half as PEM."""
    return key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


class Authority:
    """Signs the certificates of one control plane."""

    def __init__(self, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        self._certificate = certificate
        self._key = key

    @classmethod
    def create(cls) -> Authority:
        """A new authority with its own key."""
        key = private_key()
        name = _name("poolwise control plane")
        builder = _builder(name, name, key).add_extension(
            x509.BasicConstraints(ca=True, path_length=0), critical=True
        )
        builder = builder.add_extension(_key_usage(signs_certificates=True), critical=True)
        return cls(builder.sign(key, hashes.SHA256()), key)

    @classmethod
    def load(cls, folder: Path) -> Authority:
        """The authority that :meth:`save` wrote there."""
        key = serialization.load_pem_private_key((folder / "ca.key").read_bytes(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        return cls(x509.load_pem_x509_certificate((folder / "ca.crt").read_bytes()), key)

    def save(self, folder: Path) -> None:
        """Write ``ca.crt`` and ``ca.key``."""
        (folder / "ca.crt").write_bytes(self.certificate)
        (folder / "ca.key").write_bytes(private_pem(self._key))

    @property
    def certificate(self) -> bytes:
        """What clients verify servers by, and servers clients, as PEM."""
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    def server(self, names: Iterable[str], addresses: Iterable[str]) -> Pair:
        """A certificate for servers that answer under these names and addresses."""
        identities: list[x509.GeneralName] = [x509.DNSName(name) for name in names]
        identities += [x509.IPAddress(ip_address(address)) for address in addresses]
        extension = x509.SubjectAlternativeName(identities)
        return self._issue(_name("server"), ExtendedKeyUsageOID.SERVER_AUTH, extension)

    def client(self, user: str, groups: Iterable[str] = ()) -> Pair:
        """A certificate that makes its holder ``user``, a member of ``groups``."""
        return self._issue(_name(user, groups), ExtendedKeyUsageOID.CLIENT_AUTH)

    def _issue(
        self,
        subject: x509.Name,
        usage: x509.ObjectIdentifier,
        *extensions: x509.ExtensionType,
    ) -> Pair:
        key = private_key()
        builder = _builder(subject, self._certificate.subject, key)
        builder = builder.add_extension(_key_usage(signs_certificates=False), critical=True)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        for extension in (x509.ExtendedKeyUsage([usage]), issuer, *extensions):
            builder = builder.add_extension(extension, critical=False)
        signed = builder.sign(self._key, hashes.SHA256())
        return Pair(signed.public_bytes(serialization.Encoding.PEM), private_pem(key))


def _name(common_name: str, organizations: Iterable[str] = ()) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in organizations]
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    return (
        x509.CertificateBuilder(subject_name=subject, issuer_name=issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + VALIDITY)
        .add_extension(identifier, critical=False)
    )


def _key_usage(signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )
