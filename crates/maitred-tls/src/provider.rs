//! The cryptography of all sessions: suites and groups.

use std::sync::{Arc, OnceLock};

use rustls::crypto::{CryptoProvider, aws_lc_rs};

/// Suites and groups. The suites are all that rustls has: TLS 1.3, and TLS 1.2 with ECDHE and AEAD. All are good, so the client's order counts: it knows
/// whether it has AES in hardware. Its order counts among the groups, too; one that has X25519MLKEM768 puts it first.
pub(crate) fn provider() -> &'static Arc<CryptoProvider> {
    static PROVIDER: OnceLock<Arc<CryptoProvider>> = OnceLock::new();
    PROVIDER.get_or_init(|| {
        use aws_lc_rs::kx_group::{SECP256R1, SECP384R1, X25519, X25519MLKEM768};
        let kx_groups = vec![X25519MLKEM768, X25519, SECP256R1, SECP384R1];
        Arc::new(CryptoProvider { kx_groups, ..aws_lc_rs::default_provider() })
    })
}
