internal import AgentCore

/// What a sign-in shows the server.
enum SignInProof {
    case password(Credentials)
    /// `challenge` is the server's name for it.
    case secondFactor(SecondFactorAnswer.Factor, code: Secret, challenge: Secret)
}
