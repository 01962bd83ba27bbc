//! Private keys that are encrypted with a password: PKCS#8 (RFC 5958 §3) by the second scheme of PKCS#5 (RFC 8018 §6.2).
//!
//! Keys for the cipher come from PBKDF2 or scrypt (RFC 7914 §7.1), the content is in AES or triple DES, both CBC: what `openssl pkcs8 -topk8`
//! writes. The files are the operator's own; yet no content of one makes the reader fail or take more memory than [`MAX_MEMORY`].

use aws_lc_rs::cipher::{
    AES_128, AES_192, AES_256, Algorithm, DecryptionContext, PaddedBlockDecryptingKey, UnboundCipherKey,
};
use aws_lc_rs::iv::FixedLength;
use cbc::cipher::block_padding::Pkcs7;
use cbc::cipher::{BlockModeDecrypt, KeyIvInit};
use pbkdf2::pbkdf2_hmac;
use zeroize::Zeroizing;

use crate::der::{INTEGER, OBJECT_IDENTIFIER, OCTET_STRING, Reader, SEQUENCE};

/// The most that scrypt may take, in bytes. OpenSSL's parameters take 16 MiB.
const MAX_MEMORY: u64 = 1 << 30;

/// The longest key of a cipher, in bytes.
const MAX_KEY: usize = 32;

/// 1.2.840.113549.1.5, of PKCS#5
const PKCS5: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 5];

/// An encrypted key.
pub(crate) struct EncryptedKey<'a> {
    derivation: Derivation<'a>,
    cipher: Cipher,
    vector: &'a [u8],
    content: &'a [u8],
}

/// Why a key cannot be decrypted with any password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// It is encrypted by the first scheme of PKCS#5.
    FirstScheme,
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

#[derive(Clone, Copy)]
enum Cipher {
    Aes(&'static Algorithm, usize),
    TripleDes,
}

impl<'a> EncryptedKey<'a> {
    pub(crate) fn read(der: &'a [u8]) -> Result<Self, Unreadable> {
        let mut outer = Reader::new(der).inside(SEQUENCE).ok_or(Unreadable::Unknown)?;
        let mut algorithm = outer.inside(SEQUENCE).ok_or(Unreadable::Unknown)?;
        let scheme = algorithm.content(OBJECT_IDENTIFIER).and_then(|kind| kind.strip_prefix(PKCS5));
        match scheme {
            Some([13]) => {}
            Some([1 | 3 | 4 | 6 | 10 | 11]) => return Err(Unreadable::FirstScheme),
            _ => return Err(Unreadable::Unknown),
        }
        Self::second_scheme(algorithm, outer).ok_or(Unreadable::Unknown)
    }

    fn second_scheme(mut algorithm: Reader<'a>, mut outer: Reader<'a>) -> Option<Self> {
        let content = outer.content(OCTET_STRING)?;
        let mut parameters = algorithm.inside(SEQUENCE)?;
        let derivation = Derivation::read(parameters.inside(SEQUENCE)?)?;
        let mut scheme = parameters.inside(SEQUENCE)?;
        let cipher = match scheme.content(OBJECT_IDENTIFIER)? {
            // 2.16.840.1.101.3.4.1.2, .22 and .42
            [0x60, 0x86, 0x48, 1, 0x65, 3, 4, 1, 2] => Cipher::Aes(&AES_128, 16),
            [0x60, 0x86, 0x48, 1, 0x65, 3, 4, 1, 22] => Cipher::Aes(&AES_192, 24),
            [0x60, 0x86, 0x48, 1, 0x65, 3, 4, 1, 42] => Cipher::Aes(&AES_256, 32),
            // 1.2.840.113549.3.7
            [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 3, 7] => Cipher::TripleDes,
            _ => return None,
        };
        Some(Self { derivation, cipher, vector: scheme.content(OCTET_STRING)?, content })
    }

    /// The key in PKCS#8. `None`: it has another password.
    pub(crate) fn decrypt(&self, password: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let mut space = Zeroizing::new([0; MAX_KEY]);
        let mut bytes = Zeroizing::new(self.content.to_vec());
        let opened = match self.cipher {
            Cipher::Aes(algorithm, length) => {
                let key = space.get_mut(..length)?;
                self.derivation.derive(password, key)?;
                let key =
                    PaddedBlockDecryptingKey::cbc_pkcs7(UnboundCipherKey::new(algorithm, key).ok()?).ok()?;
                let vector = FixedLength::try_from(self.vector).ok()?;
                key.decrypt(&mut bytes, DecryptionContext::Iv128(vector)).ok()?.len()
            }
            Cipher::TripleDes => {
                let key = space.get_mut(..24)?;
                self.derivation.derive(password, key)?;
                let cipher = cbc::Decryptor::<des::TdesEde3>::new_from_slices(key, self.vector).ok()?;
                cipher.decrypt_padded::<Pkcs7>(&mut bytes).ok()?.len()
            }
        };
        bytes.truncate(opened);
        // A wrong password may leave what ends as padding does.
        let is_key =
            Reader::new(&bytes).value(SEQUENCE).is_some_and(|value| value.whole.len() == bytes.len());
        is_key.then_some(bytes)
    }
}

impl<'a> Derivation<'a> {
    fn read(mut algorithm: Reader<'a>) -> Option<Self> {
        let kind = algorithm.content(OBJECT_IDENTIFIER)?;
        let mut parameters = algorithm.inside(SEQUENCE)?;
        let salt = parameters.content(OCTET_STRING)?;
        match kind {
            // 1.2.840.113549.1.5.12
            [rest @ .., 12] if rest == PKCS5 => {
                let rounds = number(&mut parameters)?;
                // The length of the key, which the cipher says as well.
                parameters.value(INTEGER);
                let hash = match parameters.inside(SEQUENCE) {
                    Some(mut algorithm) => Hash::read(algorithm.content(OBJECT_IDENTIFIER)?)?,
                    None => Hash::Sha1,
                };
                Some(Self::Pbkdf2 { salt, rounds, hash })
            }
            // 1.3.6.1.4.1.11591.4.11
            [0x2b, 6, 1, 4, 1, 0xda, 0x47, 4, 11] => {
                let (cost, block, parallel) =
                    (number(&mut parameters)?, number(&mut parameters)?, number(&mut parameters)?);
                let memory = u64::from(cost).checked_mul(u64::from(block))?.checked_mul(128)?;
                if !cost.is_power_of_two() || memory > MAX_MEMORY {
                    return None;
                }
                let params = scrypt::Params::new(u8::try_from(cost.trailing_zeros()).ok()?, block, parallel);
                Some(Self::Scrypt { salt, params: params.ok()? })
            }
            _ => None,
        }
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

fn number(reader: &mut Reader<'_>) -> Option<u32> {
    let digits = reader.content(INTEGER)?;
    // A zero in front says that a number is positive.
    let digits = digits.strip_prefix(&[0]).unwrap_or(digits);
    let number = digits.iter().fold(0_u64, |number, digit| number << 8 | u64::from(*digit));
    (digits.len() <= 4).then(|| u32::try_from(number).ok())?
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

    #[test]
    fn scrypt_takes_a_bounded_amount_of_memory() {
        let (_, text) = ENCRYPTED[4];
        let mut file = der(text);
        // The cost of 16, in a byte.
        let at = file.windows(3).position(|part| part == [INTEGER, 1, 16]).expect("a cost") + 2;
        for (cost, is_read) in [(64, true), (15, false), (0, false), (0x80, true)] {
            file[at] = cost;
            assert_eq!(EncryptedKey::read(&file).is_ok(), is_read, "{cost}");
        }
        let costs = [(1 << 20, 8, true), (1 << 21, 8, false), (2, 1 << 23, false)];
        for (cost, block, is_read) in costs {
            let number = |number: u32| [&[INTEGER, 5, 0][..], &number.to_be_bytes()].concat();
            let numbers = [number(cost), number(block), number(1)].concat();
            let length = u8::try_from(numbers.len() + 2).expect("short");
            let scrypt = [0x2b, 6, 1, 4, 1, 0xda, 0x47, 4, 11];
            let parameters =
                [&[OBJECT_IDENTIFIER, 9], &scrypt[..], &[SEQUENCE, length, OCTET_STRING, 0], &numbers]
                    .concat();
            assert_eq!(Derivation::read(Reader::new(&parameters)).is_some(), is_read, "{cost} {block}");
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
