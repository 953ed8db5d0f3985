internal import AgentCore

/// Prints a script that teaches a shell to complete canopyctl's command line.
enum Completion: Command {
    static let name = "completion"
    static let summary = "print a script that completes canopyctl in a shell"
    static let operands = "bash|zsh|fish"
    static let remarks = """
        bash:  canopyctl completion bash > ~/.local/share/bash-completion/completions/canopyctl
        zsh:   canopyctl completion zsh > "${fpath[1]}/_canopyctl"
        fish:  canopyctl completion fish > ~/.config/fish/completions/canopyctl.fish
        """
    static let options: Options = []

    static func run(_ arguments: Arguments) throws(Complaint) -> ExitCode {
        try arguments.check(operands: 1, named: "bash, zsh or fish")
        switch arguments.operands[0] {
        case "bash": try StandardOutput.print(bash)
        case "zsh": try StandardOutput.print(zsh)
        case "fish": try StandardOutput.print(fish)
        default: throw arguments.usage("completion knows bash, zsh and fish")
        }
        return .done
    }

    private static var names: String {
        Canopyctl.commands.map { $0.name }.joined(separator: " ")
    }

    /// The options that a person would type; those for secrets are none.
    private static func options(of command: any Command.Type) -> [Option] {
        (command.options + Options.common).filter { !$0.meaning.isEmpty }
    }

    /// What is taken besides options, where it is a choice of words.
    private static func choices(of command: any Command.Type) -> String {
        guard !command.stopsAtOperand, command.operands.contains("|") else { return "" }
        return command.operands.replacing("|", with: " ")
    }

    /// Passes on the first word of each line from this one on, if it is no more than a word to a shell.
    ///
    /// The ids of sessions are the server's to choose. bash expands what it offers for completion, and
    /// puts it into the line as it is: `$(…)` in an id would be run.
    private static func harmless(from line: Int, printing words: String = "$1") -> String {
        "awk 'NR >= \(line) && $1 ~ /^[0-9A-Za-z_][0-9A-Za-z._:-]*$/ { print \(words) }'"
    }

    private static var bash: String {
        let cases = Canopyctl.commands.map { command in
            let words = options(of: command).map { "--\($0.name)" } + [choices(of: command)]
            return "        \(command.name)) words=\"\(words.joined(separator: " "))\" ;;"
        }
        return """
            # bash completion for canopyctl
            _canopyctl() {
                local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
                local command= profile= words= found= index after
                for ((index = 1; index < COMP_CWORD; index++)); do
                    # bash splits --option=value in three.
                    after=${COMP_WORDS[index+1]}
                    [[ $after == "=" ]] && after=${COMP_WORDS[index+2]}
                    case ${COMP_WORDS[index]} in
                    --)
                        if declare -F _command_offset >/dev/null; then
                            _command_offset $((index + 1))
                        elif ((COMP_CWORD == index + 1)); then
                            COMPREPLY=($(compgen -c -- "$current"))
                        else
                            COMPREPLY=($(compgen -f -- "$current"))
                        fi
                        return
                        ;;
                    -p|--profile) profile=$after ;;
                    -*|=) ;;
                    *) [[ -z $command ]] && command=${COMP_WORDS[index]} ;;
                    esac
                done
                [[ $previous == "=" ]] && previous=${COMP_WORDS[COMP_CWORD-2]}
                [[ $current == "=" ]] && current=
                COMPREPLY=()
                case $previous in
                -p|--profile) found=$(canopyctl profiles 2>/dev/null | \(harmless(from: 1))) ;;
                --write-file) compopt -o default 2>/dev/null; return ;;
                --on-rotate) words="none restart signal=" ;;
                --seal-with) words="host tpm2 host+tpm2" ;;
                *)
                    case $command in
                    "") words="\(names) --help --version" ;;
            \(cases.map { "        " + $0 }.joined(separator: "\n"))
                    esac
                    if [[ $command == revoke && $current != -* ]]; then
                        words= found=$(canopyctl sessions ${profile:+--profile "$profile"} 2>/dev/null |
                            \(harmless(from: 2)))
                    fi
                    ;;
                esac
                COMPREPLY=($(compgen -W "$words $found" -- "$current"))
            }
            complete -F _canopyctl canopyctl
            """
    }

    private static var zsh: String {
        let commands = Canopyctl.commands.map { "        '\($0.name):\(quoted($0.summary))'" }
        let cases = Canopyctl.commands.map { command -> String in
            var lines = options(of: command).map { option -> String in
                // With a value in the same word or in the next one.
                let (short, long) = option.value == nil ? ("", "") : ("+", "=")
                let names = option.letter.map {
                    "'(-\($0) --\(option.name))'{-\($0)\(short),--\(option.name)\(long)}"
                }
                return "            \(names ?? "--\(option.name)\(long)")"
                    + "'[\(quoted(option.meaning))]\(zshValue(option))'"
            }
            if command.name == Revoke.name {
                lines.append("            '1:session:_canopyctl_sessions'")
            } else if !choices(of: command).isEmpty {
                lines.append("            '1:action:(\(choices(of: command)))'")
            }
            return "        \(command.name)) _arguments -S \\\n"
                + lines.joined(separator: " \\\n") + " ;;"
        }
        return """
            #compdef canopyctl
            _canopyctl_profiles() {
                local -a names=(${(f)"$(canopyctl profiles 2>/dev/null |
                    \(harmless(from: 1)))"})
                _describe profile names
            }
            _canopyctl_sessions() {
                local profile=${opt_args[-p]:-${opt_args[--profile]}}
                local -a ids=(${(f)"$(canopyctl sessions ${profile:+--profile=$profile} 2>/dev/null |
                    \(harmless(from: 2)))"})
                _describe session ids
            }
            _canopyctl() {
                # Not "commands", which is zsh's own and tells it what can be run.
                local -a ours=(
            \(commands.joined(separator: "\n"))
                )
                if (( CURRENT == 2 )); then
                    _describe command ours
                    return
                fi
                local command=$words[2]
                shift words
                (( CURRENT-- ))
                # What follows -- is another program's line.
                local separator=${words[(i)--]}
                if (( separator < CURRENT )) && [[ $command == (exec|curl) ]]; then
                    words=("${(@)words[separator+1,-1]}")
                    (( CURRENT -= separator ))
                    if [[ $command == curl ]]; then
                        words=(curl "${(@)words}")
                        (( CURRENT++ ))
                    fi
                    _normal
                    return
                fi
                case $command in
            \(cases.joined(separator: "\n"))
                esac
            }
            # Loaded by its name from fpath, or sourced.
            if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
                _canopyctl "$@"
            else
                compdef _canopyctl canopyctl
            fi
            """
    }

    private static func zshValue(_ option: Option) -> String {
        guard let value = option.value else { return "" }
        switch option {
        case .profile: return ":profile:_canopyctl_profiles"
        case .writeFile: return ":file:_files"
        case .onRotate: return ":what:(none restart signal=HUP signal=USR1)"
        case .sealWith: return ":key:(host tpm2 host+tpm2)"
        case .user: return ":user:_users"
        case .help, .version, .json, .minimumValidity, .timeout, .ifGeneration, .local, .all, .url,
            .key, .email, .passwordFromInput, .codeFromInput, .username, .environmentName, .execute,
            .apply, .undo, .passphraseFromInput, .password, .code:
            return ":\(value.lowercased()): "
        }
    }

    /// Quotes and brackets would end what they stand in.
    private static func quoted(_ text: String) -> String {
        text.replacing("'", with: "’").replacing(":", with: "\\:")
            .replacing("[", with: "(").replacing("]", with: ")")
    }

    private static var fish: String {
        var lines = [
            "# fish completion for canopyctl",
            "complete -c canopyctl -f",
            """
            function __canopyctl_profiles
                canopyctl profiles 2>/dev/null | \(harmless(from: 1))
            end
            function __canopyctl_sessions
                set -l profile
                set -l words (commandline -opc)
                for index in (seq (count $words))
                    switch $words[$index]
                        case -p --profile
                            set profile --profile $words[(math $index + 1)]
                        case '--profile=*'
                            set profile $words[$index]
                    end
                end
                canopyctl sessions $profile 2>/dev/null |
                    \(harmless(from: 2, printing: #"$1 "\t" $2"#))
            end
            """,
        ]
        for command in Canopyctl.commands {
            lines.append(
                "complete -c canopyctl -n __fish_use_subcommand -a \(command.name) "
                    + "-d '\(quoted(command.summary))'")
            let condition = "-n '__fish_seen_subcommand_from \(command.name)'"
            for option in options(of: command) {
                let letter = option.letter.map { " -s \($0)" } ?? ""
                lines.append(
                    "complete -c canopyctl \(condition) -l \(option.name)\(letter)"
                        + "\(fishValue(option)) -d '\(quoted(option.meaning))'")
            }
            if command.name == Revoke.name {
                lines.append(
                    "complete -c canopyctl \(condition) -a '(__canopyctl_sessions)'")
            } else if command.stopsAtOperand {
                // What is completed from -- on is another program's line.
                lines.append(
                    "complete -c canopyctl -n '__fish_seen_subcommand_from \(command.name); "
                        + "and contains -- -- (commandline -opc)' -F -a '(__fish_complete_command)'"
                )
            } else if !choices(of: command).isEmpty {
                lines.append("complete -c canopyctl \(condition) -a '\(choices(of: command))'")
            }
        }
        return lines.joined(separator: "\n")
    }

    private static func fishValue(_ option: Option) -> String {
        guard option.value != nil else { return "" }
        switch option {
        case .profile: return " -x -a '(__canopyctl_profiles)'"
        case .writeFile: return " -r -F"
        case .onRotate: return " -x -a 'none restart signal=HUP signal=USR1'"
        case .sealWith: return " -x -a 'host tpm2 host+tpm2'"
        case .user: return " -x -a '(__fish_complete_users)'"
        case .help, .version, .json, .minimumValidity, .timeout, .ifGeneration, .local, .all, .url,
            .key, .email, .passwordFromInput, .codeFromInput, .username, .environmentName, .execute,
            .apply, .undo, .passphraseFromInput, .password, .code:
            return " -x"
        }
    }
}
