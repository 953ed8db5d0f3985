extension Timestamp {
    /// Reads `2026-04-20T09:05:07Z`, with or without a fraction, in UTC or with an offset.
    ///
    /// nil for anything else. Years are 1970 to 9999.
    package static func wallTime(rfc3339 text: String) -> WallTime? {
        var text = Substring(text).utf8
        guard let year = digits(4, 1970...9999, &text), skip("-", &text),
            let month = digits(2, 1...12, &text), skip("-", &text),
            let day = digits(2, 1...31, &text), skip("T", &text) || skip("t", &text),
            let hour = digits(2, 0...23, &text), skip(":", &text),
            let minute = digits(2, 0...59, &text), skip(":", &text),
            let second = digits(2, 0...60, &text)
        else { return nil }
        if skip(".", &text) {
            let fraction = text.prefix { (48...57).contains($0) }
            guard !fraction.isEmpty else { return nil }
            text = text.dropFirst(fraction.count)
        }
        guard let offset = offset(&text), text.isEmpty else { return nil }
        // Days since 1970 by counting the years from March on, so that a leap day comes last.
        let shifted = month <= 2 ? year - 1 : year
        let monthFromMarch = (month + 9) % 12
        let days =
            shifted * 365 + shifted / 4 - shifted / 100 + shifted / 400
            + (153 * monthFromMarch + 2) / 5 + day - 719_469
        guard day <= length(of: month, year) else { return nil }
        return WallTime(
            seconds: days * 86_400 + hour * 3600 + minute * 60 + second - offset)
    }

    /// The days of a month.
    private static func length(of month: Int64, _ year: Int64) -> Int64 {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    /// Seconds east of UTC.
    private static func offset(_ text: inout Substring.UTF8View) -> Int64? {
        if skip("Z", &text) || skip("z", &text) { return 0 }
        let sign: Int64
        if skip("+", &text) {
            sign = 1
        } else if skip("-", &text) {
            sign = -1
        } else {
            return nil
        }
        guard let hours = digits(2, 0...23, &text), skip(":", &text),
            let minutes = digits(2, 0...59, &text)
        else { return nil }
        return sign * (hours * 3600 + minutes * 60)
    }

    private static func digits(
        _ count: Int, _ range: ClosedRange<Int64>, _ text: inout Substring.UTF8View
    ) -> Int64? {
        var value: Int64 = 0
        for _ in 0..<count {
            guard let digit = text.popFirst(), (48...57).contains(digit) else { return nil }
            value = value * 10 + Int64(digit - 48)
        }
        return range.contains(value) ? value : nil
    }

    private static func skip(_ character: Unicode.Scalar, _ text: inout Substring.UTF8View) -> Bool
    {
        guard text.first == UInt8(ascii: character) else { return false }
        text.removeFirst()
        return true
    }
}
