//! Private keys that are encrypted with a password: PKCS#8 (RFC 5958 §3) by the second scheme of PKCS#5 (RFC 8018 §6.2).
//!
//! Keys for the cipher come from PBKDF2 or scrypt (RFC 7914 §7.1), the content is in AES or triple DES, both CBC: what `openssl pkcs8 -topk8`
//! writes. The files are the operator's own; yet no content of one makes the reader fail, take more memory than [`MAX_MEMORY`], or compute for minutes.

use aws_lc_rs::cipher::{
    AES_128, AES_192, AES_256, Algorithm, DecryptionContext, PaddedBlockDecryptingKey, UnboundCipherKey,
};
use pbkdf2::pbkdf2_hmac;
use zeroize::Zeroizing;

use self::Unreadable::Unknown;
use crate::der::{INTEGER, OBJECT_IDENTIFIER, OCTET_STRING, Reader, SEQUENCE};

/// The most that scrypt may take, in bytes: 1 GiB for its table, and a few blocks. OpenSSL's parameters take 16 MiB.
const MAX_MEMORY: u64 = (1 << 30) + (1 << 20);

/// The most blocks that scrypt may mix: cost, size of a block and parallelism multiplied. OpenSSL's parameters make 2^17, in less than a tenth of a second.
const MAX_MIXED: u64 = 1 << 24;

/// The most rounds of PBKDF2, some ten seconds. OpenSSL writes 2048.
const MAX_ROUNDS: u64 = 10_000_000;

/// The longest key of a cipher, in bytes.
const MAX_KEY: usize = 32;

/// 1.2.840.113549.1.5, of PKCS#5
const PKCS5: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 5];

#[expect(deprecated, reason = "OpenSSL writes triple DES when it is asked to")]
const TRIPLE_DES: &Algorithm = &aws_lc_rs::cipher::DES_EDE3_FOR_LEGACY_USE_ONLY;

/// An encrypted key.
pub(crate) struct EncryptedKey<'a> {
    derivation: Derivation<'a>,
    cipher: Cipher,
    vector: &'a [u8],
    content: &'a [u8],
}

/// An algorithm with the length of its keys, in bytes.
type Cipher = (&'static Algorithm, usize);

/// Why a key cannot be decrypted with any password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// It is encrypted by the first scheme of PKCS#5.
    FirstScheme,
    /// Decryption would take too long or too much memory. The text names the encryption and the limit.
    TooCostly(String),
    /// It is broken, or encrypted in another way.
    Unknown,
}

enum Derivation<'a> {
    Pbkdf2 { salt: &'a [u8], rounds: u32, hash: Hash },
    Scrypt { salt: &'a [u8], params: scrypt::Params },
}

#[derive(Clone, Copy)]
enum Hash {
    Sha1,
    Sha224,
    Sha256,
    Sha384,
    Sha512,
}

impl<'a> EncryptedKey<'a> {
    pub(crate) fn read(der: &'a [u8]) -> Result<Self, Unreadable> {
        let mut outer = Reader::new(der).inside(SEQUENCE).ok_or(Unknown)?;
        let mut algorithm = outer.inside(SEQUENCE).ok_or(Unknown)?;
        let scheme = algorithm.content(OBJECT_IDENTIFIER).and_then(|kind| kind.strip_prefix(PKCS5));
        match scheme {
            Some([13]) => {}
            Some([1 | 3 | 4 | 6 | 10 | 11]) => return Err(Unreadable::FirstScheme),
            _ => return Err(Unknown),
        }
        let content = outer.content(OCTET_STRING).ok_or(Unknown)?;
        let mut parameters = algorithm.inside(SEQUENCE).ok_or(Unknown)?;
        let derivation = Derivation::read(parameters.inside(SEQUENCE).ok_or(Unknown)?)?;
        let (cipher, vector) = parameters.inside(SEQUENCE).and_then(Self::scheme).ok_or(Unknown)?;
        Ok(Self { derivation, cipher, vector, content })
    }

    fn scheme(mut scheme: Reader<'a>) -> Option<(Cipher, &'a [u8])> {
        let cipher = match scheme.content(OBJECT_IDENTIFIER)? {
            // 2.16.840.1.101.3.4.1.2, .22 and .42
            [0x60, 0x86, 0x48, 1, 0x65, 3, 4, 1, 2] => (&AES_128, 16),
            [0x60, 0x86, 0x48, 1, 0x65, 3, 4, 1, 22] => (&AES_192, 24),
            [0x60, 0x86, 0x48, 1, 0x65, 3, 4, 1, 42] => (&AES_256, 32),
            // 1.2.840.113549.3.7
            [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 3, 7] => (TRIPLE_DES, 24),
            _ => return None,
        };
        let vector = scheme.content(OCTET_STRING)?;
        (vector.len() == cipher.0.block_len()).then_some((cipher, vector))
    }

    /// The key in PKCS#8. `None`: it has another password.
    pub(crate) fn decrypt(&self, password: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let (algorithm, length) = self.cipher;
        let mut space = Zeroizing::new([0; MAX_KEY]);
        let key = space.get_mut(..length)?;
        self.derivation.derive(password, key)?;
        let key = PaddedBlockDecryptingKey::cbc_pkcs7(UnboundCipherKey::new(algorithm, key).ok()?).ok()?;
        let context = match self.vector.len() {
            8 => DecryptionContext::Iv64(self.vector.try_into().ok()?),
            _ => DecryptionContext::Iv128(self.vector.try_into().ok()?),
        };
        let mut bytes = Zeroizing::new(self.content.to_vec());
        let opened = key.decrypt(&mut bytes, context).ok()?.len();
        bytes.truncate(opened);
        // A wrong password may leave what ends as padding does.
        let is_key =
            Reader::new(&bytes).value(SEQUENCE).is_some_and(|value| value.whole.len() == bytes.len());
        is_key.then_some(bytes)
    }
}

impl<'a> Derivation<'a> {
    fn read(mut algorithm: Reader<'a>) -> Result<Self, Unreadable> {
        let kind = algorithm.content(OBJECT_IDENTIFIER).ok_or(Unknown)?;
        let mut parameters = algorithm.inside(SEQUENCE).ok_or(Unknown)?;
        let salt = parameters.content(OCTET_STRING).ok_or(Unknown)?;
        match kind {
            // 1.2.840.113549.1.5.12
            [rest @ .., 12] if rest == PKCS5 => Self::pbkdf2(salt, parameters),
            // 1.3.6.1.4.1.11591.4.11
            [0x2b, 6, 1, 4, 1, 0xda, 0x47, 4, 11] => Self::scrypt(salt, parameters),
            _ => Err(Unknown),
        }
    }

    fn pbkdf2(salt: &'a [u8], mut parameters: Reader<'a>) -> Result<Self, Unreadable> {
        let rounds = number(&mut parameters).filter(|rounds| *rounds > 0).ok_or(Unknown)?;
        if rounds > MAX_ROUNDS {
            let text = format!("with {rounds} rounds of PBKDF2, and the most are {MAX_ROUNDS}");
            return Err(Unreadable::TooCostly(text));
        }
        // The length of the key, which the cipher says as well.
        parameters.value(INTEGER);
        let hash = match parameters.inside(SEQUENCE) {
            Some(mut algorithm) => {
                algorithm.content(OBJECT_IDENTIFIER).and_then(Hash::read).ok_or(Unknown)?
            }
            None => Hash::Sha1,
        };
        Ok(Self::Pbkdf2 { salt, rounds: u32::try_from(rounds).map_err(|_| Unknown)?, hash })
    }

    fn scrypt(salt: &'a [u8], mut parameters: Reader<'a>) -> Result<Self, Unreadable> {
        let mut next = || number(&mut parameters).filter(|number| *number > 0).ok_or(Unknown);
        let (cost, block, parallel) = (next()?, next()?, next()?);
        if !cost.is_power_of_two() {
            return Err(Unknown);
        }
        let blocks = cost.saturating_add(parallel).saturating_add(2);
        let memory = blocks.saturating_mul(block).saturating_mul(128);
        let mixed = cost.saturating_mul(block).saturating_mul(parallel);
        if memory > MAX_MEMORY || mixed > MAX_MIXED {
            return Err(Unreadable::TooCostly(format!(
                "with scrypt of N={cost}, r={block} and p={parallel}, and the most are 1 GiB of memory (N*r*128) and N*r*p of {MAX_MIXED}"
            )));
        }
        let params = || {
            let (block, parallel) = (u32::try_from(block).ok()?, u32::try_from(parallel).ok()?);
            scrypt::Params::new(u8::try_from(cost.trailing_zeros()).ok()?, block, parallel).ok()
        };
        Ok(Self::Scrypt { salt, params: params().ok_or(Unknown)? })
    }

    fn derive(&self, password: &[u8], key: &mut [u8]) -> Option<()> {
        match *self {
            Self::Pbkdf2 { salt, rounds, hash } => match hash {
                Hash::Sha1 => pbkdf2_hmac::<sha1::Sha1>(password, salt, rounds, key),
                Hash::Sha224 => pbkdf2_hmac::<sha2::Sha224>(password, salt, rounds, key),
                Hash::Sha256 => pbkdf2_hmac::<sha2::Sha256>(password, salt, rounds, key),
                Hash::Sha384 => pbkdf2_hmac::<sha2::Sha384>(password, salt, rounds, key),
                Hash::Sha512 => pbkdf2_hmac::<sha2::Sha512>(password, salt, rounds, key),
            },
            Self::Scrypt { salt, ref params } => scrypt::scrypt(password, salt, params, key).ok()?,
        }
        Some(())
    }
}

impl Hash {
    /// 1.2.840.113549.2.7 to .11
    fn read(kind: &[u8]) -> Option<Self> {
        Some(match kind.strip_prefix(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 2])? {
            [7] => Self::Sha1,
            [8] => Self::Sha224,
            [9] => Self::Sha256,
            [10] => Self::Sha384,
            [11] => Self::Sha512,
            _ => return None,
        })
    }
}

/// A number; one beyond 64 bits is the largest that fits.
fn number(reader: &mut Reader<'_>) -> Option<u64> {
    let digits = reader.content(INTEGER)?;
    Some(
        digits
            .iter()
            .fold(0_u64, |number, digit| number.saturating_mul(256).saturating_add(u64::from(*digit))),
    )
}

#[cfg(test)]
mod tests {
    use base64ct::{Base64, Encoding};
    use proptest::prelude::*;

    use super::*;

    /// A key, and the same encrypted with the password `sesame` by OpenSSL 3.0.
    const PLAIN: &str = "MC4CAQAwBQYDK2VwBCIEIKRb5EbIPc6TfrTMU1wDRyjuLG0MjWYlaHbaFK7BxMAa";
    const ENCRYPTED: [(&str, &str); 6] = [
        (
            "aes-128-cbc, hmacWithSHA224",
            "MIGaMFYGCSqGSIb3DQEFDTBJMCgGCSqGSIb3DQEFDDAbBAjcnNyS+7kVVAIBCjAMBggqhkiG9w0CCAUAMB0GCWCGSAFlAwQBAgQQvHP4q8ARRmxwK8og4lyWPwRAbNUIeiXkP6dtOBjClFok119/pc2Se1fp0LVv/5ue+meKa7Dk0olhnL8NU4YFtfoDhf1/2HngOU7LC+jHnH3VpA==",
        ),
        (
            "aes-192-cbc, hmacWithSHA384",
            "MIGbMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAgKLNiGdlDTXwICASwwDAYIKoZIhvcNAgoFADAdBglghkgBZQMEARYEEMqlmYSbCl+O+oiGxbvX/IgEQJIcYpK6kbflorD4xxizOwdaQsDixwOVsuc0vvLPsMlSnFc+HDNHj6258LWRk2P0fjrVE35e23o3H9hcDTJIjY0=",
        ),
        (
            "aes-256-cbc, hmacWithSHA512",
            "MIGaMFYGCSqGSIb3DQEFDTBJMCgGCSqGSIb3DQEFDDAbBAjfpngvnqM0AgIBCjAMBggqhkiG9w0CCwUAMB0GCWCGSAFlAwQBKgQQbXJHEwN8AP9j2SV0p8sy4QRAnbOerYIxtwRMbToLP2VNPIZIQd/52Da4q2alzm2sidXWTqL2slfUk8IPXHyGTt5C+C8cSgC+IFptkpbI1Zvl4A==",
        ),
        (
            "des3, hmacWithSHA1",
            "MHswPwYJKoZIhvcNAQUNMDIwGgYJKoZIhvcNAQUMMA0ECI9xNZFpImwOAgEKMBQGCCqGSIb3DQMHBAgT6a2+dY/1ngQ4YxVBTQJ+1lBWCHIoCsdjqLEssENeNotBg+jkVwPQWmTRqX9iia3qWaTMnotRDUyHJclRVW6+W/A=",
        ),
        (
            "scrypt",
            "MIGSME4GCSqGSIb3DQEFDTBBMCAGCSsGAQQB2kcECzATBAiQmTTG5HXu+gIBEAIBAQIBAjAdBglghkgBZQMEASoEEMkRfmHtSbv0DfVGjgXp4KYEQJiXEldDz1nieP+BbdYdwvYXw98HCx+LjHSE9oeQ5n+x2ZznDtYk8OFRA6TSHiJdvbpZfYw6wviS4eeLT5iH2E8=",
        ),
        (
            "aes-256-cbc",
            "MIGaMFYGCSqGSIb3DQEFDTBJMCgGCSqGSIb3DQEFDDAbBAg6PS/Tza93EgIBCjAMBggqhkiG9w0CCQUAMB0GCWCGSAFlAwQBKgQQ6jttr66rn2L5+2vbBFZZHgRAMVaC4ssQK5oaPuwVuZ9ekkkqnU8MGpUivKNOCfdVcO/GxNcDTrn07kWPk5BnfG/r/gTrOipt17YNPCMGGlTOSg==",
        ),
    ];
    const FIRST_SCHEME: &str = "MFcwGwYJKoZIhvcNAQUDMA4ECKMJDuDpyVRiAgIIAAQ4mq2g7XRwZFGxCF5S/i2rbO4g3Cj8Sz7HmKVHkK2hSriiroyWMyh5XAusrbx8vRKoKYXQDm0PaJk=";
    const OF_PKCS12: &str = "MFgwHAYKKoZIhvcNAQwBAzAOBAglRkDTnpLpHgICCAAEOFXx3EnJlRWIK+0ptwgNlESCvgkFGmh29eaMjfy15CNs6SOYzNaGmphhbelk4/sAluLWOKkX5bL7";

    fn der(base64: &str) -> Vec<u8> {
        Base64::decode_vec(base64).expect("base64")
    }

    #[test]
    fn what_openssl_writes_is_opened_by_its_password_only() {
        for (how, text) in ENCRYPTED {
            let file = der(text);
            let key = EncryptedKey::read(&file).expect(how);
            assert_eq!(key.decrypt(b"sesame").map(|key| key.to_vec()), Some(der(PLAIN)), "{how}");
            assert!(key.decrypt(b"Sesame").is_none() && key.decrypt(b"").is_none(), "{how}");
        }
    }

    #[test]
    fn other_schemes_are_told() {
        let fault = |text: &str| EncryptedKey::read(&der(text)).err();
        assert_eq!(fault(FIRST_SCHEME), Some(Unreadable::FirstScheme));
        assert_eq!(fault(OF_PKCS12), Some(Unreadable::Unknown));
        assert_eq!(fault(PLAIN), Some(Unreadable::Unknown));
    }

    /// The refusal of a derivation of this kind with these numbers; `None` if the reader takes the derivation.
    fn refusal(kind: &[u8], numbers: &[u64]) -> Option<Unreadable> {
        let value =
            |tag: u8, content: &[u8]| [&[tag, u8::try_from(content.len()).expect("short")], content].concat();
        let number = |number: &u64| value(INTEGER, &[&[0], &number.to_be_bytes()[..]].concat());
        let salt = value(OCTET_STRING, &[]);
        let parameters = [salt, numbers.iter().flat_map(number).collect()].concat();
        let whole = [value(OBJECT_IDENTIFIER, kind), value(SEQUENCE, &parameters)].concat();
        Derivation::read(Reader::new(&whole)).err()
    }

    #[test]
    fn scrypt_takes_a_bounded_amount_of_memory_and_time() {
        const SCRYPT: &[u8] = &[0x2b, 6, 1, 4, 1, 0xda, 0x47, 4, 11];
        let whole = u64::from(u32::MAX);
        for (cost, block, parallel) in [(1 << 14, 8, 1), (1 << 20, 8, 1), (1 << 14, 8, 128), (16, 1, 2)] {
            assert_eq!(refusal(SCRYPT, &[cost, block, parallel]), None, "{cost} {block} {parallel}");
        }
        for numbers in [[15, 1, 1], [0, 1, 1], [16, 0, 1], [16, 1, 0]] {
            assert_eq!(refusal(SCRYPT, &numbers), Some(Unknown), "{numbers:?}");
        }
        for numbers in [
            [1 << 21, 8, 1],
            [2, 1 << 23, 1],
            // The blocks that are mixed side by side take memory too.
            [1, 1, 1 << 24],
            [1 << 14, 8, 129],
            // The product is 0 in 32 bits, or in 64.
            [2, 1 << 16, 1 << 16],
            [2, whole, whole],
            [1 << 63, 1 << 63, 1 << 63],
        ] {
            let refusal = refusal(SCRYPT, &numbers);
            assert!(matches!(refusal, Some(Unreadable::TooCostly(_))), "{numbers:?} {refusal:?}");
        }
    }

    #[test]
    fn pbkdf2_takes_a_bounded_number_of_rounds() {
        let kind = [PKCS5, &[12]].concat();
        assert_eq!(refusal(&kind, &[2048]), None);
        assert_eq!(refusal(&kind, &[MAX_ROUNDS]), None);
        assert_eq!(refusal(&kind, &[0]), Some(Unknown));
        for rounds in [MAX_ROUNDS + 1, 1 << 32, u64::MAX] {
            let refusal = refusal(&kind, &[rounds]);
            let is_told = matches!(&refusal, Some(Unreadable::TooCostly(text)) if text.contains("the most are 10000000"));
            assert!(is_told, "{rounds} {refusal:?}");
        }
    }

    #[test]
    fn a_short_vector_is_no_wrong_password() {
        for (which, name, length) in [(0, &[3, 4, 1, 2][..], 16), (3, &[0x0d, 3, 7], 8)] {
            let file = der(ENCRYPTED[which].1);
            let start = [name, &[OCTET_STRING, length]].concat();
            let at = file.windows(start.len()).position(|part| part == start).expect("a vector") + name.len();
            // The last two bytes of the vector become a value of their own (NULL), which the reader passes over.
            let mut short = file.clone();
            let end = at + 2 + usize::from(length);
            short[at + 1] = length - 2;
            short[end - 2..end].copy_from_slice(&[5, 0]);
            assert!(EncryptedKey::read(&file).is_ok());
            assert_eq!(EncryptedKey::read(&short).err(), Some(Unknown));
        }
    }

    proptest! {
        /// Without the derivation, whose number of rounds a change may make large.
        #[test]
        fn a_changed_file_is_read_or_refused(which in 0..6_usize, changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4)) {
            let mut file = der(ENCRYPTED[which].1);
            for (at, value) in changes {
                let at = at.index(file.len());
                file[at] = value;
            }
            _ = EncryptedKey::read(&file).is_ok();
        }
    }
}
