/// JSON: what was read can be written, and is read again as the same.
enum JSONFuzz {
    static func check(_ bytes: UnsafeRawBufferPointer) {
        let root: JSONValue
        do throws(JSONFault) {
            root = try JSONReader.parse(bytes)
        } catch {
            return law(
                (0...bytes.count).contains(error.offset), "a fault is somewhere in the bytes")
        }
        check(root, depth: 0)
        let once = written(root)
        once.withUnsafeBytes { once in
            guard let again = try? JSONReader.parse(once) else {
                return law(false, "what is written can be read")
            }
            law(isSame(root, again), "what is written is what was read")
            law(written(again).elementsEqual(once), "writing twice gives the same")
        }
        checkPrefixes(bytes, root)
    }

    /// A value that ends with a bracket or a quote is not there before it.
    private static func checkPrefixes(_ bytes: UnsafeRawBufferPointer, _ root: JSONValue) {
        switch root.kind {
        case .object, .array, .string: break
        case .number, .bool, .null: return
        }
        var end = bytes.count
        while [0x20, 0x09, 0x0A, 0x0D].contains(bytes[end - 1]) { end -= 1 }
        for length in stride(from: 0, to: end, by: max(1, end / 32)) {
            law((try? JSONReader.parse(bytes.first(length))) == nil, "half a value is none")
        }
        law((try? JSONReader.parse(bytes.first(end - 1))) == nil, "half a value is none")
    }

    private static func check(_ value: JSONValue, depth: Int) {
        law(depth <= Limits.jsonDepth, "nesting has its limit")
        switch value.kind {
        case .object:
            for (key, member) in value.members {
                law(value[key] != nil, "a member is found by its name")
                check(member, depth: depth + 1)
            }
            law(value.members.reduce(0) { count, _ in count + 1 } == value.count, "all are there")
        case .array:
            for element in value.elements { check(element, depth: depth + 1) }
            law(value.elements.reduce(0) { count, _ in count + 1 } == value.count, "all are there")
        case .string:
            checkText(value)
        case .number:
            if let int = value.int, int.magnitude < 1 << 53 {
                law(value.double == Double(int), "an integer is the number that it is")
            }
        case .bool: law(value.bool != nil, "a truth value has one")
        case .null: law(value.isNull, "null is null")
        }
    }

    private static func checkText(_ value: JSONValue) {
        guard let text = value.string, let secret = value.secret(in: .ordinary) else {
            return law(false, "a string has a text")
        }
        law(value.stringCount == text.utf8.count, "a string is as long as it is")
        secret.withBytes { law($0.elementsEqual(text.utf8), "a secret holds what the text says") }
    }

    private static func written(_ value: JSONValue) -> [UInt8] {
        var writer = JSONWriter(into: [UInt8]())
        write(value, to: &writer)
        return writer.finish()
    }

    private static func write(_ value: JSONValue, to writer: inout JSONWriter<[UInt8]>) {
        switch value.kind {
        case .object:
            writer.beginObject()
            for (key, member) in value.members {
                writer.key(key)
                write(member, to: &writer)
            }
            writer.endObject()
        case .array:
            writer.beginArray()
            for element in value.elements { write(element, to: &writer) }
            writer.endArray()
        case .string: writer.string(value.string ?? "")
        case .number:
            if let int = value.int {
                writer.number(int)
            } else if let double = value.double, double.isFinite {
                writer.number(double)
            } else {
                writer.null()
            }
        case .bool: writer.bool(value.bool ?? false)
        case .null: writer.null()
        }
    }

    private static func isSame(_ left: JSONValue, _ right: JSONValue) -> Bool {
        switch left.kind {
        case .object:
            let (mine, other) = (Array(left.members), Array(right.members))
            return right.kind == .object && mine.count == other.count
                && zip(mine, other).allSatisfy { $0.key == $1.key && isSame($0.value, $1.value) }
        case .array:
            let (mine, other) = (Array(left.elements), Array(right.elements))
            return right.kind == .array && mine.count == other.count
                && zip(mine, other).allSatisfy(isSame)
        case .string: return left.string == right.string
        case .number:
            guard let double = left.double, double.isFinite else { return right.isNull }
            return left.int == right.int || left.double == right.double
        case .bool: return left.bool == right.bool
        case .null: return right.isNull
        }
    }
}
