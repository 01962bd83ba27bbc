"""What the arguments ``verify`` and ``cert`` of httpx and requests mean for an origin.

A client certificate within an ``ssl.SSLContext`` cannot be seen: Python has no way to ask for it, so `cert` has to name its files. All
other settings of a context are read, or refused with a message.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: The file with certificate and key, or one file for each; a password of the key.
Certificate = tuple[str, "str | None", "str | None"]

#: Said where a handshake fails that a client certificate might have saved.
HINT = "a certificate that an ssl.SSLContext presents cannot be read from it: give its files as cert="


class Trust:
    """Which certificates of servers are good. `authorities` is a file, a folder or PEM itself; ``None``: those of the system."""

    __slots__ = ("authorities", "from_context", "verify")

    def __init__(self, verify: ssl.SSLContext | str | bool, environment: Mapping[str, str] | None = None) -> None:
        self.verify, self.from_context = True, isinstance(verify, ssl.SSLContext)
        self.authorities: str | None = None
        if isinstance(verify, ssl.SSLContext):
            self._read(verify)
        elif isinstance(verify, (str, os.PathLike)):
            self.authorities = existing(os.fspath(verify), "verify")
        elif not verify:
            self.verify = False
        elif environment is not None:
            self.authorities = environment.get("SSL_CERT_FILE") or environment.get("SSL_CERT_DIR") or None

    def _read(self, context: ssl.SSLContext) -> None:
        if context.verify_mode == ssl.CERT_NONE:
            self.verify = False
            return
        if not context.check_hostname:
            raise ValueError("verify: the ssl.SSLContext checks certificates without names (check_hostname is False), which maitred.http does"
                             " not: check both or none (verify_mode = ssl.CERT_NONE)")
        if context.verify_flags & (ssl.VERIFY_CRL_CHECK_LEAF | ssl.VERIFY_CRL_CHECK_CHAIN):
            raise ValueError("verify: the ssl.SSLContext asks for revocation lists, which maitred.http does not read: take verify_flags"
                             " without VERIFY_CRL_CHECK")
        if context.minimum_version == ssl.TLSVersion.TLSv1_3:
            raise ValueError("verify: the ssl.SSLContext wants TLS 1.3 alone; maitred.http takes TLS 1.2, too: leave minimum_version as it is")
        try:
            found = context.get_ca_certs(binary_form=True)
        except NotImplementedError:
            # truststore asks the system at each connection, and has nothing of its own.
            return
        if not found:
            raise ValueError("verify: no certificate of an authority can be read from the ssl.SSLContext (it reads its folder when it needs"
                             " it): name the file or folder itself, verify='/etc/ssl/certs'")
        self.authorities = "".join(ssl.DER_cert_to_PEM_cert(each) for each in found)


def certificate_of(cert: Any) -> Certificate | None:
    """The client certificate of an argument `cert`: a file, or a tuple of certificate, key and password."""
    if not cert:
        return None
    given = (cert,) if isinstance(cert, (str, os.PathLike)) else tuple(cert)
    if not 1 <= len(given) <= 3:
        raise ValueError(f"cert has {len(given)} parts; it is a file, or (certificate, key), or (certificate, key, password)")
    file, key, password = (*given, None, None)[:3]
    if isinstance(password, bytes):
        password = password.decode()
    return existing(os.fspath(file), "cert"), None if key is None else existing(os.fspath(key), "cert"), password


def existing(path: str, argument: str) -> str:
    if not os.path.exists(path):
        raise FileNotFoundError(f"{argument}: there is no file or folder {path}")
    return path
