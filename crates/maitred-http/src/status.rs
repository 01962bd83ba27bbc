//! Response status codes (RFC 9110 §15).

use std::fmt;

/// A status code from 100 to 999.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Status(u16);

macro_rules! statuses {
    ($($name:ident = $code:literal $reason:literal;)*) => {
        impl Status {
            $(
                #[doc = concat!("`", $code, " ", $reason, "`")]
                pub const $name: Status = Status($code);
            )*

            /// The standard reason phrase, or the empty string for a code without one.
            pub fn reason(self) -> &'static str {
                match self.0 {
                    $($code => $reason,)*
                    _ => "",
                }
            }
        }
    };
}

statuses! {
    CONTINUE = 100 "Continue";
    SWITCHING_PROTOCOLS = 101 "Switching Protocols";
    PROCESSING = 102 "Processing";
    EARLY_HINTS = 103 "Early Hints";
    OK = 200 "OK";
    CREATED = 201 "Created";
    ACCEPTED = 202 "Accepted";
    NON_AUTHORITATIVE_INFORMATION = 203 "Non-Authoritative Information";
    NO_CONTENT = 204 "No Content";
    RESET_CONTENT = 205 "Reset Content";
    PARTIAL_CONTENT = 206 "Partial Content";
    MULTI_STATUS = 207 "Multi-Status";
    ALREADY_REPORTED = 208 "Already Reported";
    IM_USED = 226 "IM Used";
    MULTIPLE_CHOICES = 300 "Multiple Choices";
    MOVED_PERMANENTLY = 301 "Moved Permanently";
    FOUND = 302 "Found";
    SEE_OTHER = 303 "See Other";
    NOT_MODIFIED = 304 "Not Modified";
    TEMPORARY_REDIRECT = 307 "Temporary Redirect";
    PERMANENT_REDIRECT = 308 "Permanent Redirect";
    BAD_REQUEST = 400 "Bad Request";
    UNAUTHORIZED = 401 "Unauthorized";
    PAYMENT_REQUIRED = 402 "Payment Required";
    FORBIDDEN = 403 "Forbidden";
    NOT_FOUND = 404 "Not Found";
    METHOD_NOT_ALLOWED = 405 "Method Not Allowed";
    NOT_ACCEPTABLE = 406 "Not Acceptable";
    PROXY_AUTHENTICATION_REQUIRED = 407 "Proxy Authentication Required";
    REQUEST_TIMEOUT = 408 "Request Timeout";
    CONFLICT = 409 "Conflict";
    GONE = 410 "Gone";
    LENGTH_REQUIRED = 411 "Length Required";
    PRECONDITION_FAILED = 412 "Precondition Failed";
    CONTENT_TOO_LARGE = 413 "Content Too Large";
    URI_TOO_LONG = 414 "URI Too Long";
    UNSUPPORTED_MEDIA_TYPE = 415 "Unsupported Media Type";
    RANGE_NOT_SATISFIABLE = 416 "Range Not Satisfiable";
    EXPECTATION_FAILED = 417 "Expectation Failed";
    IM_A_TEAPOT = 418 "I'm a teapot";
    MISDIRECTED_REQUEST = 421 "Misdirected Request";
    UNPROCESSABLE_CONTENT = 422 "Unprocessable Content";
    LOCKED = 423 "Locked";
    FAILED_DEPENDENCY = 424 "Failed Dependency";
    TOO_EARLY = 425 "Too Early";
    UPGRADE_REQUIRED = 426 "Upgrade Required";
    PRECONDITION_REQUIRED = 428 "Precondition Required";
    TOO_MANY_REQUESTS = 429 "Too Many Requests";
    REQUEST_HEADER_FIELDS_TOO_LARGE = 431 "Request Header Fields Too Large";
    UNAVAILABLE_FOR_LEGAL_REASONS = 451 "Unavailable For Legal Reasons";
    INTERNAL_SERVER_ERROR = 500 "Internal Server Error";
    NOT_IMPLEMENTED = 501 "Not Implemented";
    BAD_GATEWAY = 502 "Bad Gateway";
    SERVICE_UNAVAILABLE = 503 "Service Unavailable";
    GATEWAY_TIMEOUT = 504 "Gateway Timeout";
    HTTP_VERSION_NOT_SUPPORTED = 505 "HTTP Version Not Supported";
    INSUFFICIENT_STORAGE = 507 "Insufficient Storage";
    NETWORK_AUTHENTICATION_REQUIRED = 511 "Network Authentication Required";
}

impl Status {
    /// A status from its number; `None` outside 100 to 999.
    pub fn from_code(code: u16) -> Option<Self> {
        (100..=999).contains(&code).then_some(Self(code))
    }

    /// The number, 100 to 999.
    pub fn code(self) -> u16 {
        self.0
    }

    /// Whether a response with this status never has a body (RFC 9110 §6.4.1, and §15.3.6 of 205).
    pub fn forbids_body(self) -> bool {
        self.0 < 200 || matches!(self.0, 204 | 205 | 304)
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.0, self.reason())
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}
