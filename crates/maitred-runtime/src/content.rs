//! The content of a body that a handler sends.

use std::fmt;
use std::fs::File;
use std::sync::Arc;

/// A part of a response body. Every variant can be delivered after the handler has returned.
#[derive(Clone, Debug)]
pub enum Content {
    /// Bytes of the program itself.
    Static(&'static [u8]),
    /// Bytes handed over.
    Bytes(Vec<u8>),
    /// Bytes shared with a cache or with other responses.
    Shared(Arc<[u8]>),
    /// Bytes of a foreign object, kept until they have left.
    Owned(Owner),
    /// A part of a file, sent by the engine.
    File(FileRange),
}

/// An object that holds bytes: the same ones whenever it is asked. It is dropped on the thread that sends the last of
/// them, which may be any.
#[derive(Clone)]
pub struct Owner(Arc<dyn AsRef<[u8]> + Send + Sync>);

impl Owner {
    /// Takes the object.
    pub fn new(object: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        Self(Arc::new(object))
    }

    /// The bytes of the object.
    pub fn bytes(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Owner({} bytes)", self.bytes().len())
    }
}

/// A part of an open file. The file is never mapped: truncation would be a signal, not an error.
#[derive(Clone, Debug)]
pub struct FileRange {
    /// The open regular file.
    pub file: Arc<File>,
    /// First byte, from the start of the file.
    pub offset: u64,
    /// Number of bytes.
    pub length: u64,
}

impl Content {
    /// The number of bytes.
    pub fn len(&self) -> u64 {
        match self {
            Self::Static(bytes) => bytes.len() as u64,
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Shared(bytes) => bytes.len() as u64,
            Self::Owned(owner) => owner.bytes().len() as u64,
            Self::File(range) => range.length,
        }
    }

    /// The bytes of content in memory; `None` for a file.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Static(bytes) => Some(bytes),
            Self::Bytes(bytes) => Some(bytes),
            Self::Shared(bytes) => Some(bytes),
            Self::Owned(owner) => Some(owner.bytes()),
            Self::File(_) => None,
        }
    }

    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Bytes that are there for the duration of a call. Bytes that do not leave within it are kept.
pub trait Lend {
    /// The bytes: the same ones whenever it is asked.
    fn bytes(&self) -> &[u8];

    /// The same bytes as content that stays when the call is over.
    fn keep(&self) -> Content;
}

/// The last part of a body, or all of it.
#[derive(Clone)]
pub enum Last<'a> {
    /// Handed over.
    Given(Content),
    /// The bytes are there for the duration of the call: most responses leave within it, and then no copy is needed.
    Lent(&'a dyn Lend),
}

impl Last<'_> {
    /// No bytes.
    pub const NOTHING: Self = Self::Given(Content::Static(b""));

    /// The number of bytes.
    pub fn len(&self) -> u64 {
        match self {
            Self::Given(content) => content.len(),
            Self::Lent(lender) => lender.bytes().len() as u64,
        }
    }

    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Content that stays.
    pub fn keep(self) -> Content {
        match self {
            Self::Given(content) => content,
            Self::Lent(lender) => lender.keep(),
        }
    }
}

impl From<Vec<u8>> for Content {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<&'static str> for Content {
    fn from(text: &'static str) -> Self {
        Self::Static(text.as_bytes())
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::Bytes(text.into_bytes())
    }
}
