//! Protocol buffers as they lie in memory: fields one after the other, nothing copied.

pub mod write;

/// A message is damaged: its offset from the begin of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damage(pub usize);

/// A field's value by its wire type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// Integers, which a reader takes as signed or unsigned.
    Number(u64),
    /// Eight bytes, here always a double.
    Fixed(u64),
    /// A string, bytes, or a message.
    Bytes(Message<'a>),
    /// Four bytes, here always a float.
    Fixed32(u32),
}

impl<'a> Value<'a> {
    /// The integer that it is.
    pub fn number(self) -> Option<u64> {
        match self {
            Self::Number(number) => Some(number),
            Self::Fixed(_) | Self::Fixed32(_) | Self::Bytes(_) => None,
        }
    }

    /// The string, bytes or message that it is.
    pub fn message(self) -> Option<Message<'a>> {
        match self {
            Self::Bytes(message) => Some(message),
            Self::Number(_) | Self::Fixed(_) | Self::Fixed32(_) => None,
        }
    }

    /// The bytes of [`Value::message`].
    pub fn bytes(self) -> Option<&'a [u8]> {
        self.message().map(|message| message.bytes)
    }
}

/// The bytes of a message, and where they begin in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// The message itself.
    pub bytes: &'a [u8],
    /// Offset in the file at which the message begins, in bytes.
    pub offset: usize,
}

impl<'a> Message<'a> {
    /// Its fields in order. The first damage ends them.
    pub fn fields(self) -> Fields<'a> {
        Fields { message: self, at: 0 }
    }

    /// The integers of a packed list in order. The first damage ends them.
    pub fn packed(self) -> Packed<'a> {
        Packed(self.fields())
    }

    /// The integer that the bytes begin with, and what is behind it.
    pub fn split_number(self) -> Result<(u64, Self), Damage> {
        let mut fields = self.fields();
        let number = fields.varint().ok_or(Damage(self.offset))?;
        let bytes = self.bytes.get(fields.at..).unwrap_or_default();
        let offset = self.offset + fields.at;
        Ok((number, Self { bytes, offset }))
    }

    /// The message that the bytes begin with, its length before it, and what is behind it.
    pub fn split_message(self) -> Result<(Self, Self), Damage> {
        let (length, rest) = self.split_number()?;
        let length = usize::try_from(length).ok().ok_or(Damage(self.offset))?;
        let (bytes, behind) = rest.bytes.split_at_checked(length).ok_or(Damage(self.offset))?;
        let offset = rest.offset;
        let behind = Self {
            bytes: behind,
            offset: offset + length,
        };
        Ok((Self { bytes, offset }, behind))
    }
}

/// The fields of a message: number and value.
#[derive(Debug, Clone)]
pub struct Fields<'a> {
    message: Message<'a>,
    at: usize,
}

impl<'a> Fields<'a> {
    fn varint(&mut self) -> Option<u64> {
        // Most are of one byte.
        let first = *self.message.bytes.get(self.at)?;
        if first < 0x80 {
            self.at += 1;
            return Some(u64::from(first));
        }
        let mut value = 0_u64;
        for shift in (0..70).step_by(7) {
            let byte = *self.message.bytes.get(self.at)?;
            self.at += 1;
            // The tenth byte has room for one bit.
            let part = u64::from(byte & 0x7f);
            value |= part.checked_shl(shift).filter(|_| shift < 63 || part <= 1)?;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(length)?;
        let bytes = self.message.bytes.get(self.at..end)?;
        self.at = end;
        Some(bytes)
    }

    fn field(&mut self) -> Option<(u64, Value<'a>)> {
        let key = self.varint()?;
        let value = match key & 7 {
            0 => Value::Number(self.varint()?),
            1 => Value::Fixed(u64::from_le_bytes(self.take(8)?.try_into().ok()?)),
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                let offset = self.message.offset + self.at;
                let bytes = self.take(length)?;
                Value::Bytes(Message { bytes, offset })
            }
            5 => Value::Fixed32(u32::from_le_bytes(self.take(4)?.try_into().ok()?)),
            _ => return None,
        };
        // Field numbers have 29 bits, and there is no field 0.
        let number = key >> 3;
        (1..1 << 29).contains(&number).then_some((number, value))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Value<'a>), Damage>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.message.bytes.len() {
            return None;
        }
        let at = self.message.offset + self.at;
        if let Some(field) = self.field() {
            return Some(Ok(field));
        }
        self.at = self.message.bytes.len();
        Some(Err(Damage(at)))
    }
}

/// The integers of a packed list.
#[derive(Debug, Clone)]
pub struct Packed<'a>(Fields<'a>);

impl Iterator for Packed<'_> {
    type Item = Result<u64, Damage>;

    fn next(&mut self) -> Option<Self::Item> {
        let fields = &mut self.0;
        if fields.at >= fields.message.bytes.len() {
            return None;
        }
        let at = fields.message.offset + fields.at;
        if let Some(number) = fields.varint() {
            return Some(Ok(number));
        }
        fields.at = fields.message.bytes.len();
        Some(Err(Damage(at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(bytes: &[u8]) -> Vec<Result<(u64, Value<'_>), Damage>> {
        Message { bytes, offset: 100 }.fields().collect()
    }

    #[test]
    fn every_wire_type_is_stepped_over() {
        let bytes = [
            0x08, 0x96, 0x01, 0x11, 1, 0, 0, 0, 0, 0, 0, 0, 0x1a, 2, b'h', b'i', 0x25, 1, 2, 3, 4,
        ];
        let text = Message {
            bytes: b"hi",
            offset: 114,
        };
        let expected = [
            (1, Value::Number(150)),
            (2, Value::Fixed(1)),
            (3, Value::Bytes(text)),
            (4, Value::Fixed32(0x0403_0201)),
        ];
        assert_eq!(fields(&bytes), expected.map(Ok));
    }

    #[test]
    fn packed_integers_follow_one_another() {
        let packed = |bytes| Message { bytes, offset: 7 }.packed().collect::<Vec<_>>();
        assert_eq!(packed(&[1, 0x96, 0x01]), [Ok(1), Ok(150)]);
        assert_eq!(packed(&[1, 0x96]), [Ok(1), Err(Damage(8))]);
    }

    #[test]
    fn a_message_with_its_length_before_it_is_split_off() {
        let bytes = [2, b'h', b'i', 0x96, 0x01];
        let all = Message {
            bytes: &bytes,
            offset: 7,
        };
        let (first, behind) = all.split_message().unwrap();
        assert_eq!((first.bytes, first.offset), (&b"hi"[..], 8));
        let (number, end) = behind.split_number().unwrap();
        assert_eq!((number, end.bytes, end.offset), (150, &b""[..], 12));
        assert_eq!(end.split_number(), Err(Damage(12)));
        assert_eq!(behind.split_message(), Err(Damage(10)));
    }

    #[test]
    fn damage_is_found_where_it_begins() {
        for (bytes, at) in [
            (&[0x08][..], 100),
            (&[0x08, 1, 0x1a, 9, b'x'][..], 102),
            (&[0x0b][..], 100),
            (&[0x00, 1][..], 100),
            (
                &[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02][..],
                100,
            ),
            (
                &[0x1a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01][..],
                100,
            ),
        ] {
            assert_eq!(fields(bytes).last(), Some(&Err(Damage(at))), "{bytes:?}");
        }
        let most = [0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(fields(&most), [Ok((1, Value::Number(u64::MAX)))]);
    }
}
