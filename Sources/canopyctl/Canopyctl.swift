@main
enum Canopyctl {
    static func main() {}
}
