//! The interface of the two writers: the fields of a message stand in the code once, and protobuf.rs and json.rs write them.

/// The number of a field, and its name in JSON.
#[derive(Clone, Copy)]
pub(crate) struct Field(pub(crate) u32, pub(crate) &'static str);

/// A message that is being written. A field is written also where it has its default, so a caller leaves such a field out.
pub(crate) trait Writer: Sized {
    /// An item of a batch: field 2 of its scope.
    fn item(&mut self, content: impl FnOnce(&mut Self));
    fn message(&mut self, field: Field, content: impl FnOnce(&mut Self));
    fn messages<T>(&mut self, field: Field, items: impl Iterator<Item = T>, each: impl Fn(&mut Self, T));
    /// Messages of a repeated field that are written already.
    fn written(&mut self, field: Field, items: &[u8]);
    /// Text, with U+FFFD for what is no UTF-8.
    fn text(&mut self, field: Field, text: &[u8]);
    fn id(&mut self, field: Field, id: &[u8]);
    fn bool(&mut self, field: Field, value: bool);
    /// An enumeration, or a `uint32`.
    fn small(&mut self, field: Field, value: u32);
    fn fixed32(&mut self, field: Field, value: u32);
    /// A `sint32`.
    fn signed(&mut self, field: Field, value: i32);
    /// An `int64`.
    fn integer(&mut self, field: Field, value: i64);
    /// An `sfixed64`.
    fn fixed_integer(&mut self, field: Field, value: i64);
    fn fixed64(&mut self, field: Field, value: u64);
    fn double(&mut self, field: Field, value: f64);
    fn fixed64s(&mut self, field: Field, values: &[u64]);
    fn varints(&mut self, field: Field, values: &[u64]);
    fn doubles(&mut self, field: Field, values: &[f64]);
}

/// A message of OTLP.
pub(crate) trait Message {
    fn write<W: Writer>(&self, writer: &mut W);
}
