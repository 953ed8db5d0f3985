/// Prints the access token as the header that a request carries.
enum Header: Command {
    static let name = "header"
    static let summary = "print an access token as an Authorization header"
    static let remarks = """
        For tools that read headers from a file or a pipe:
          canopyctl header | curl --header @- https://api.example.com/
        """
    static let options: Options = [.profile, .minimumValidity, .timeout]

    static func run(_ arguments: Arguments) throws(Complaint) -> ExitCode {
        try arguments.check(operands: 0)
        try Token.request(arguments, accept: .text).printToken(after: "Authorization: Bearer ")
        return .done
    }
}
