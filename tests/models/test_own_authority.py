"""A server whose certificate comes from an authority of one's own."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest

from pytest_upskill.models import ProviderError, parse_model
from tests.loopback import Loopback
from tests.sdk_requests import ask, every_sdk, request_to

pytestmark = pytest.mark.needs("module cryptography")


@pytest.fixture
def authority(loopback: Loopback, tmp_path: Path) -> Path:
    """Have the server use TLS; return the certificate of the authority that signed its own."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    keys = {name: ec.generate_private_key(ec.SECP256R1()) for name in ("authority", "server")}
    names = {name: x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)]) for name in keys}
    addresses = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    pem, now = serialization.Encoding.PEM, datetime.now(UTC)
    for name, extension in (
        ("authority", x509.BasicConstraints(ca=True, path_length=None)),
        ("server", addresses),
    ):
        certificate = (
            x509.CertificateBuilder()
            .subject_name(names[name])
            .issuer_name(names["authority"])
            .public_key(keys[name].public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(extension, critical=name == "authority")
            .sign(keys["authority"], hashes.SHA256())
        )
        private = keys[name].private_bytes(
            pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        (tmp_path / f"{name}.pem").write_bytes(certificate.public_bytes(pem) + private)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem")
    loopback.use_tls(context)
    return tmp_path / "authority.pem"


@every_sdk
def test_an_own_authority_is_trusted_by_ssl_cert_file_which_the_error_names(
    loopback: Loopback, monkeypatch: pytest.MonkeyPatch, authority: Path, provider: str
) -> None:
    path = "/v1" if provider == "openai" else ""
    request = request_to(parse_model(f"m={provider}:x@{loopback.url}{path}"))
    cure = "CERTIFICATE_VERIFY_FAILED.*set SSL_CERT_FILE to the certificates .* own authority"
    with pytest.raises(ProviderError, match=cure):
        ask(request)

    monkeypatch.setenv("SSL_CERT_FILE", str(authority))

    assert ask(request).text == "ok"
