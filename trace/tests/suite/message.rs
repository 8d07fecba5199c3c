//! Protocol buffers of our own making.

/// A message that is being written.
#[derive(Default, Clone)]
pub(crate) struct Message(pub(crate) Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(u8::try_from(value & 0x7f).unwrap() | 0x80);
            value >>= 7;
        }
        self.0.push(u8::try_from(value).unwrap());
    }

    pub(crate) fn number(mut self, field: u64, value: u64) -> Self {
        self.varint(field << 3);
        self.varint(value);
        self
    }

    pub(crate) fn double(mut self, field: u64, value: f64) -> Self {
        self.varint(field << 3 | 1);
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(crate) fn float(mut self, field: u64, value: f32) -> Self {
        self.varint(field << 3 | 5);
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(crate) fn bytes(mut self, field: u64, value: &[u8]) -> Self {
        self.varint(field << 3 | 2);
        self.varint(u64::try_from(value.len()).unwrap());
        self.0.extend_from_slice(value);
        self
    }

    pub(crate) fn text(self, field: u64, value: &str) -> Self {
        self.bytes(field, value.as_bytes())
    }

    pub(crate) fn message(self, field: u64, value: &Self) -> Self {
        self.bytes(field, &value.0)
    }

    pub(crate) fn messages(self, field: u64, values: &[Self]) -> Self {
        values.iter().fold(self, |message, value| message.message(field, value))
    }

    /// With its length before it, as reports of Nsight Systems hold messages.
    pub(crate) fn delimited(&self) -> Vec<u8> {
        [varint(u64::try_from(self.0.len()).unwrap()), self.0.clone()].concat()
    }

    /// With its size before it, as reports of Nsight Compute hold messages.
    pub(crate) fn sized(&self) -> Vec<u8> {
        let size = u32::try_from(self.0.len()).unwrap();
        [&size.to_le_bytes()[..], &self.0].concat()
    }
}

/// An integer as messages hold it.
pub(crate) fn varint(value: u64) -> Vec<u8> {
    let mut message = Message::default();
    message.varint(value);
    message.0
}

pub(crate) fn new() -> Message {
    Message::default()
}
