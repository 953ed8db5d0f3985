/// Dates as text: RFC 3339 for ourselves, the three HTTP forms (RFC 9110, 5.6.7) for what a
/// server sends.
package enum Timestamp {
    /// `2026-04-20T09:05:07Z`.
    package static func rfc3339(_ time: WallTime) -> String {
        let seconds = time.seconds
        let days = floorDivide(seconds, 86_400)
        let second = seconds - days * 86_400
        let date = civil(days: days)
        return pad(date.year, 4) + "-" + pad(date.month, 2) + "-" + pad(date.day, 2) + "T"
            + pad(second / 3600, 2) + ":" + pad(second / 60 % 60, 2) + ":" + pad(second % 60, 2)
            + "Z"
    }

    /// Appends `Sun, 06 Nov 1994 08:49:37 GMT`, as a `Date` header has it.
    package static func appendHTTP(_ time: WallTime, to bytes: inout [UInt8]) {
        let days = floorDivide(time.seconds, 86_400)
        let second = time.seconds - days * 86_400
        let date = civil(days: days)
        // The first of January 1970 was a Thursday.
        let weekday = days + 4 - floorDivide(days + 4, 7) * 7
        append(name: weekday, of: "SunMonTueWedThuFriSat", to: &bytes)
        bytes.append(", " as StaticString)
        append(date.day, 2, to: &bytes)
        bytes.append(UInt8(ascii: " "))
        append(name: date.month - 1, of: "JanFebMarAprMayJunJulAugSepOctNovDec", to: &bytes)
        bytes.append(UInt8(ascii: " "))
        append(date.year, 4, to: &bytes)
        bytes.append(UInt8(ascii: " "))
        append(second / 3600, 2, to: &bytes)
        bytes.append(UInt8(ascii: ":"))
        append(second / 60 % 60, 2, to: &bytes)
        bytes.append(UInt8(ascii: ":"))
        append(second % 60, 2, to: &bytes)
        bytes.append(" GMT" as StaticString)
    }

    /// Appends the name at `place` in a row of names of three letters each.
    private static func append(
        name place: Int64, of names: StaticString, to bytes: inout [UInt8]
    ) {
        let start = names.utf8Start + Int(place) * 3
        bytes.append(contentsOf: UnsafeBufferPointer(start: start, count: 3))
    }

    private static func append(_ value: Int64, _ width: Int, to bytes: inout [UInt8]) {
        withDecimal(value) { digits in
            for _ in 0..<max(0, width - digits.count) { bytes.append(UInt8(ascii: "0")) }
            bytes.append(contentsOf: digits)
        }
    }

    /// Reads `Sun, 06 Nov 1994 08:49:37 GMT` and its two obsolete forms; nil for anything else.
    package static func http(_ text: String) -> WallTime? {
        let words = text.split(separator: " ", omittingEmptySubsequences: true)
        if words.count == 6, words[5] == "GMT", words[0].hasSuffix(",") {
            return moment(day: words[1], month: words[2], year: words[3], clock: words[4])
        }
        if words.count == 5, !words[0].hasSuffix(",") {
            return moment(day: words[2], month: words[1], year: words[4], clock: words[3])
        }
        if words.count == 4, words[3] == "GMT", words[0].hasSuffix(",") {
            let parts = words[1].split(separator: "-", omittingEmptySubsequences: false)
            guard parts.count == 3, let short = number(parts[2], 0...99) else { return nil }
            // RFC 9110 asks for the century that is not more than 50 years ahead; a server of
            // ours lives after 2000.
            return moment(
                day: parts[0], month: parts[1], year: Substring(String(2000 + short)),
                clock: words[2])
        }
        return nil
    }

    private static func moment(
        day: Substring, month: Substring, year: Substring, clock: Substring
    ) -> WallTime? {
        let parts = clock.split(separator: ":", omittingEmptySubsequences: false)
        guard let day = number(day, 1...31), let year = number(year, 1970...9999),
            let month = months.firstIndex(of: String(month)), parts.count == 3,
            let hour = number(parts[0], 0...23), let minute = number(parts[1], 0...59),
            let second = number(parts[2], 0...60)
        else { return nil }
        let days = daysFromCivil(year: year, month: Int64(month) + 1, day: day)
        guard civil(days: days).day == day else { return nil }
        return WallTime(seconds: days * 86_400 + hour * 3600 + minute * 60 + second)
    }

    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    private static func number(_ text: Substring, _ range: ClosedRange<Int64>) -> Int64? {
        guard let value = Int64(text), text.utf8.allSatisfy({ (48...57).contains($0) }),
            range.contains(value)
        else { return nil }
        return value
    }

    private static func pad(_ value: Int64, _ width: Int) -> String {
        let digits = String(value)
        return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
    }

    private static func floorDivide(_ value: Int64, _ by: Int64) -> Int64 {
        value >= 0 ? value / by : (value - by + 1) / by
    }

    /// Howard Hinnant's `civil_from_days`: the Gregorian calendar in whole numbers.
    private static func civil(days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let shifted = days + 719_468
        let era = floorDivide(shifted, 146_097)
        let dayOfEra = shifted - era * 146_097
        let yearOfEra =
            (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        return (
            yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month,
            dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
        )
    }

    /// Howard Hinnant's `days_from_civil`, the inverse.
    private static func daysFromCivil(year: Int64, month: Int64, day: Int64) -> Int64 {
        let shifted = month <= 2 ? year - 1 : year
        let era = floorDivide(shifted, 400)
        let yearOfEra = shifted - era * 400
        let monthFromMarch = month > 2 ? month - 3 : month + 9
        let dayOfYear = (153 * monthFromMarch + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * 146_097 + dayOfEra - 719_468
    }
}
