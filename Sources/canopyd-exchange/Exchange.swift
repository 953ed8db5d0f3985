@main
enum Exchange {
    static func main() {}
}
