internal import CLinux

/// Small secrets, several to a page of locked memory: a page for each would cost a daemon with a
/// hundred profiles most of its memory.
///
/// A page is cut into places of one size, and given back when its last place is. What is free is
/// zeroed.
struct SecretPlaces {
    private struct Page {
        let start: UInt
        let place: Int
        /// A bit for each place that is taken.
        var taken: UInt64 = 0

        var places: Int { SecretPlaces.page / place }
        var isFull: Bool { taken.nonzeroBitCount == places }
    }

    /// Bytes of a page, on all machines that we run on.
    static let page = 4096

    /// Larger secrets would leave half a page empty, and get pages of their own.
    static let largest = page / 2

    /// As many places as `taken` has bits.
    private static let smallest = page / UInt64.bitWidth

    private var pages: [Page] = []

    /// Bytes that a place for `size` bytes, 1 to ``largest``, has.
    static func place(for size: Int) -> Int {
        let needed = max(smallest, (size + 15) / 16 * 16)
        // What the cut would leave over is spread over the places.
        return page / (page / needed) / 16 * 16
    }

    /// The address of a free place for `size` bytes; `map` makes pages, and returns their address.
    mutating func take(_ size: Int, map: () -> UInt) -> UInt {
        let place = SecretPlaces.place(for: size)
        let found = pages.firstIndex { $0.place == place && !$0.isFull }
        let index = found ?? pages.count
        if found == nil { pages.append(Page(start: map(), place: place)) }
        let free = (~pages[index].taken).trailingZeroBitCount
        pages[index].taken |= 1 << UInt64(free)
        return pages[index].start + UInt(free * place)
    }

    /// Gives back a place that has been wiped; returns the page's address if it was its last.
    mutating func give(_ address: UInt) -> UInt? {
        let start = address / UInt(SecretPlaces.page) * UInt(SecretPlaces.page)
        guard let index = pages.firstIndex(where: { $0.start == start }) else {
            preconditionFailure("secret memory was given back that had not been handed out")
        }
        let bit: UInt64 = 1 << UInt64(Int(address - start) / pages[index].place)
        precondition(pages[index].taken & bit != 0, "secret memory was given back twice")
        pages[index].taken &= ~bit
        guard pages[index].taken == 0 else { return nil }
        pages.swapAt(index, pages.count - 1)
        return pages.removeLast().start
    }
}
