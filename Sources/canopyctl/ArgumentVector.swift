internal import CLinux

/// The program's arguments, as the kernel put them.
///
/// This stands in for the function of the Swift runtime that ``CommandLine`` calls, which the linker
/// then leaves out: that one reads and parses the process's memory map at every start, before `main`
/// and whether or not anybody asks, a twelfth of the time of `canopyctl token`. A runtime that
/// wanted more of the same object file would bring it in as well, and linking would fail.
@_cdecl("_swift_stdlib_getUnsafeArgvArgc")
func argumentVector(
    _ count: UnsafeMutablePointer<Int32>
) -> UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? {
    guard let environment = clinux_environment() else { return nil }
    // Below the environment stands a NULL, below it the arguments, and below these their number
    // (System V ABI, AMD64 3.4.1, AArch64 alike); nothing has moved the environment yet.
    var number = 0
    while Int(bitPattern: environment[-2 - number]) != number { number += 1 }
    count.pointee = Int32(number)
    return environment - 1 - number
}
