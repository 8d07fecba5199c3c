//! Protocol buffers as they are written: <https://protobuf.dev/programming-guides/encoding/>.

/// The bytes of a message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Message(Vec<u8>);

impl Message {
    /// One without fields.
    pub fn new() -> Self {
        Self::default()
    }

    fn varint(&mut self, mut value: u64) {
        loop {
            let [low, ..] = value.to_le_bytes();
            value >>= 7;
            if value == 0 {
                self.0.push(low & 0x7f);
                return;
            }
            self.0.push(low | 0x80);
        }
    }

    fn key(&mut self, field: u32, wire_type: u64) {
        self.varint(u64::from(field) << 3 | wire_type);
    }

    /// A field of an integer type or an enum. Signed ones are given as the bits of 64.
    #[must_use]
    pub fn number(mut self, field: u32, value: u64) -> Self {
        self.key(field, 0);
        self.varint(value);
        self
    }

    /// A field `double`.
    #[must_use]
    pub fn double(mut self, field: u32, value: f64) -> Self {
        self.key(field, 1);
        self.0.extend(value.to_le_bytes());
        self
    }

    /// A field `fixed64`.
    #[must_use]
    pub fn fixed(mut self, field: u32, value: u64) -> Self {
        self.key(field, 1);
        self.0.extend(value.to_le_bytes());
        self
    }

    fn bytes(mut self, field: u32, bytes: &[u8]) -> Self {
        self.key(field, 2);
        self.varint(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        self.0.extend(bytes);
        self
    }

    /// A packed field of an integer type. Signed ones are given as the bits of 64.
    #[must_use]
    pub fn packed(self, field: u32, values: impl IntoIterator<Item = u64>) -> Self {
        let mut packed = Self::new();
        for value in values {
            packed.varint(value);
        }
        self.message(field, &packed)
    }

    /// A field `string`.
    #[must_use]
    pub fn text(self, field: u32, text: &str) -> Self {
        self.bytes(field, text.as_bytes())
    }

    /// A field that is a message.
    #[must_use]
    pub fn message(self, field: u32, message: &Self) -> Self {
        self.bytes(field, &message.0)
    }

    /// The encoded message.
    pub fn encoded(&self) -> &[u8] {
        &self.0
    }

    /// The encoded message, without a copy.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_encoded_as_the_format_says() {
        // The examples of the format's own description, and the longest number.
        let message = Message::new()
            .number(1, 150)
            .text(2, "testing")
            .message(3, &Message::new().number(1, 150));
        let expected = [
            0x08, 0x96, 0x01, 0x12, 0x07, 0x74, 0x65, 0x73, 0x74, 0x69, 0x6e, 0x67, 0x1a, 0x03, 0x08, 0x96, 0x01,
        ];
        assert_eq!(message.encoded(), expected);
        let longest = Message::new().number(1, u64::MAX);
        assert_eq!(longest.encoded(), [8, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]);
        let fixed = Message::new().double(1, 1.0).fixed(2, 1);
        assert_eq!(
            fixed.encoded(),
            [9, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 17, 1, 0, 0, 0, 0, 0, 0, 0]
        );
        let packed = Message::new().packed(6, [3, 270, 86942]);
        assert_eq!(packed.encoded(), [0x32, 6, 3, 0x8e, 2, 0x9e, 0xa7, 5]);
    }
}
