extension Secret {
    /// Whether `text` has eight bytes in a row that this secret has too, or all of a shorter one.
    ///
    /// For texts that come from outside and go to a log or a terminal.
    package func isRepeated(in text: String) -> Bool {
        let piece = MemoryLayout<UInt64>.size
        var text = text
        return text.withUTF8 { words in
            withBytes { bytes in
                guard bytes.count >= piece else {
                    return Secret.occurs(bytes, in: UnsafeRawBufferPointer(words))
                }
                guard words.count >= piece else { return false }
                let words = UnsafeRawBufferPointer(words)
                var pieces: Set<UInt64> = []
                for start in 0...(words.count - piece) {
                    pieces.insert(words.loadUnaligned(fromByteOffset: start, as: UInt64.self))
                }
                return (0...(bytes.count - piece)).contains { start in
                    pieces.contains(bytes.loadUnaligned(fromByteOffset: start, as: UInt64.self))
                }
            }
        }
    }

    private static func occurs(
        _ bytes: UnsafeRawBufferPointer, in words: UnsafeRawBufferPointer
    ) -> Bool {
        guard !bytes.isEmpty, words.count >= bytes.count else { return false }
        return (0...(words.count - bytes.count)).contains { start in
            words[start..<(start + bytes.count)].elementsEqual(bytes)
        }
    }
}
