/// An option of a command line; what it means is the same in every command that has it.
///
/// Declared in the order in which a command's help lists them; at most 32.
enum Option: Int32, CaseIterable {
    case profile
    case url
    case key
    case email
    case minimumValidity
    case ifGeneration
    case timeout
    case local
    case all
    case passwordFromInput
    case codeFromInput
    case username
    case environmentName
    case onRotate
    case execute
    case writeFile
    case user
    case apply
    case undo
    case sealWith
    case passphraseFromInput
    case json
    case help
    case version
    // Never accepted: here so that getopt_long does not take them as the beginning of the two
    // above, and the secret behind them as a word that an error might repeat.
    case password
    case code

    var name: StaticString {
        switch self {
        case .help: "help"
        case .version: "version"
        case .profile: "profile"
        case .json: "json"
        case .minimumValidity: "min-validity"
        case .timeout: "timeout"
        case .ifGeneration: "if-generation"
        case .local: "local"
        case .all: "all"
        case .url: "url"
        case .key: "key"
        case .email: "email"
        case .passwordFromInput: "password-stdin"
        case .codeFromInput: "code-stdin"
        case .username: "username"
        case .environmentName: "env"
        case .onRotate: "on-rotate"
        case .execute: "exec"
        case .writeFile: "write-file"
        case .user: "user"
        case .apply: "apply"
        case .undo: "undo"
        case .sealWith: "seal-with"
        case .passphraseFromInput: "passphrase-stdin"
        case .password: "password"
        case .code: "code"
        }
    }

    var letter: Unicode.Scalar? {
        switch self {
        case .help: "h"
        case .version: "V"
        case .profile: "p"
        case .json: "j"
        case .minimumValidity: "m"
        case .timeout: "t"
        case .ifGeneration: "g"
        case .local: "l"
        case .all: "a"
        case .url: "u"
        case .key: "k"
        case .email: "e"
        case .passwordFromInput, .codeFromInput, .user, .apply, .undo, .sealWith,
            .passphraseFromInput, .password, .code, .username, .environmentName, .onRotate,
            .execute, .writeFile:
            nil
        }
    }

    /// The name of the value in the help; nil for an option without one.
    var value: String? {
        switch self {
        case .profile: "PROFILE"
        case .minimumValidity, .timeout: "SECONDS"
        case .ifGeneration: "N"
        case .url: "URL"
        case .key: "pk_…"
        case .email: "EMAIL"
        case .password, .code: "SECRET"
        case .username, .environmentName: "NAME"
        case .onRotate: "none|restart|signal=SIG"
        case .execute: "CMD"
        case .writeFile: "PATH"
        case .user: "USER"
        case .sealWith: "KEY"
        case .help, .version, .json, .local, .all, .passwordFromInput, .codeFromInput, .apply,
            .undo, .passphraseFromInput:
            nil
        }
    }

    /// The variable that stands in for the option.
    var variable: String? {
        switch self {
        case .profile: "CANOPY_PROFILE"
        case .url: "CANOPY_URL"
        case .key: "CANOPY_PUBLISHABLE_KEY"
        case .help, .version, .json, .minimumValidity, .timeout, .ifGeneration, .local, .all,
            .email, .passwordFromInput, .codeFromInput, .user, .apply, .undo, .sealWith,
            .passphraseFromInput, .password, .code, .username, .environmentName, .onRotate,
            .execute, .writeFile:
            nil
        }
    }

    /// One line for the help.
    var meaning: String {
        switch self {
        case .help: "show this and exit"
        case .version: "show the version and exit"
        case .profile: "the profile; else $CANOPY_PROFILE, else default"
        case .json: "print canopyd's answer as JSON"
        case .minimumValidity: "the least that the token has to be valid for; else 30"
        case .timeout: "how long to wait for a rotation, 0 to 120; else 10"
        case .ifGeneration: "rotate only if N is still the current generation"
        case .local: "forget the session here without telling the server"
        case .all: "every profile"
        case .url: "the server; else $CANOPY_URL"
        case .key: "the publishable key; else $CANOPY_PUBLISHABLE_KEY"
        case .email: "who signs in"
        case .passwordFromInput: "read the password from the first line of standard input"
        case .codeFromInput: "read the second factor's code from standard input"
        case .username: "the user name to give with the token; else oauth2"
        case .environmentName: "the variable that holds the token; else CANOPY_ACCESS_TOKEN"
        case .onRotate: "what a rotation does to the program; else none"
        case .execute: "run CMD by the shell, now and after each rotation"
        case .writeFile: "keep the token in this file, replaced as a whole, mode 0600"
        case .user: "whose keyring it is, for root's part"
        case .apply: "do it, instead of printing it"
        case .undo: "take it back"
        case .sealWith: "what seals the passphrase: host (usual), tpm2 or host+tpm2"
        case .passphraseFromInput: "seal standard input's first line, for a keyring that exists"
        case .password, .code: ""
        }
    }
}
