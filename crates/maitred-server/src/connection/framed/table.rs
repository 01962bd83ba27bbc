//! The streams of a connection by their numbers: few, of which new ones have the highest numbers, so a sorted list.

use maitred_exchange::Stream;

/// See the module text.
#[derive(Default)]
pub(in crate::connection) struct Table {
    /// By rising numbers.
    #[expect(clippy::vec_box, reason = "they move in and out of connections by their pointers")]
    streams: Vec<Box<Stream>>,
}

impl Table {
    pub(in crate::connection) fn len(&self) -> usize {
        self.streams.len()
    }

    pub(in crate::connection) fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    fn place(&self, number: u32) -> Option<usize> {
        self.streams.binary_search_by_key(&number, |stream| stream.number).ok()
    }

    pub(in crate::connection) fn get(&self, number: u32) -> Option<&Stream> {
        self.streams.get(self.place(number)?).map(|stream| &**stream)
    }

    pub(in crate::connection) fn get_mut(&mut self, number: u32) -> Option<&mut Stream> {
        let place = self.place(number)?;
        self.streams.get_mut(place).map(|stream| &mut **stream)
    }

    /// Takes one in; none of its number may be there.
    pub(in crate::connection) fn insert(&mut self, stream: Box<Stream>) {
        let place = self.streams.partition_point(|other| other.number < stream.number);
        self.streams.insert(place, stream);
    }

    pub(in crate::connection) fn remove(&mut self, number: u32) -> Option<Box<Stream>> {
        self.place(number).map(|place| self.streams.remove(place))
    }

    pub(in crate::connection) fn values(&self) -> impl Iterator<Item = &Stream> {
        self.streams.iter().map(|stream| &**stream)
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.streams.iter_mut().map(|stream| &mut **stream)
    }

    /// All of them, first those behind this number.
    pub(super) fn in_turn(&self, behind: u32) -> impl Iterator<Item = &Stream> {
        let (before, after) =
            self.streams.split_at(self.streams.partition_point(|stream| stream.number <= behind));
        after.iter().chain(before).map(|stream| &**stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(numbers: &[u32]) -> Table {
        let mut table = Table::default();
        for number in numbers {
            let mut stream = Box::<Stream>::default();
            stream.number = *number;
            table.insert(stream);
        }
        table
    }

    fn numbers<'a>(streams: impl Iterator<Item = &'a Stream>) -> Vec<u32> {
        streams.map(|stream| stream.number).collect()
    }

    #[test]
    fn streams_are_found_by_their_numbers_and_have_their_turns() {
        let mut table = table(&[5, 1, 9, 3]);
        assert_eq!(numbers(table.values()), [1, 3, 5, 9]);
        assert_eq!(numbers(table.in_turn(0)), [1, 3, 5, 9]);
        assert_eq!(numbers(table.in_turn(3)), [5, 9, 1, 3]);
        assert_eq!(numbers(table.in_turn(4)), [5, 9, 1, 3]);
        assert_eq!(numbers(table.in_turn(9)), [1, 3, 5, 9]);
        assert!(table.get(2).is_none() && table.remove(7).is_none());
        assert_eq!(table.remove(5).map(|stream| stream.number), Some(5));
        assert_eq!((table.get(9).map(|stream| stream.number), table.len()), (Some(9), 3));
        assert!(table.get_mut(1).is_some() && !table.is_empty());
    }
}
