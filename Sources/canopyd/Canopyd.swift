@main
enum Canopyd {
    static func main() {}
}
