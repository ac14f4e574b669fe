/// What shells complete, as scripts for them.
enum Completions {
  enum Shell: String, CaseIterable { case bash, zsh }

  static func script(for shell: Shell) -> String {
    switch shell {
    case .bash: bash
    case .zsh: zsh
    }
  }

  // MARK: bash

  private static var bash: String {
    """
    # Completions of wormhole for bash.
    _wormhole() {
      local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
      local verb= index options= place=() answers='\(answers.joined(separator: " "))'
      local after=0
      for ((index = 1; index < COMP_CWORD; index++)); do
        case ${COMP_WORDS[index]} in
          --container|--group)
            place+=("${COMP_WORDS[index]}" "${COMP_WORDS[index + 1]}")
            index=$((index + 1)) ;;
          -*) ;;
          *) if [ -z "$verb" ]; then verb=${COMP_WORDS[index]}; else after=$((after + 1)); fi ;;
        esac
      done
      case $verb:$before in
        *:--container) COMPREPLY=($(compgen -d -- "$word")); return ;;
    \(Table.verbs.map(bashArguments).joined())  esac
      case $verb in
        '') options="\(words(Table.options)) $answers" ;;
    \(Table.verbs.map(bashOptions).joined())  esac
      if [[ $word == -* ]]; then
        COMPREPLY=($(compgen -W "$options" -- "$word"))
        return
      fi
      case $verb in
        '') COMPREPLY=($(compgen -W '\(verbNames)' -- "$word")) ;;
    \(Table.verbs.map(bashOperands).joined())  esac
    }
    complete -F _wormhole wormhole

    """
  }

  private static func bashArguments(_ verb: Verb) -> String {
    (verb.options + Table.options).compactMap { option in
      switch option.argument {
      case .oneOf(_, let words):
        "    \(verb.name):--\(option.name)) COMPREPLY=($(compgen -W "
          + "'\(words.joined(separator: " "))' -- \"$word\")); return ;;\n"
      case .any: "    \(verb.name):--\(option.name)) return ;;\n"
      case .member:
        "    \(verb.name):--\(option.name)) COMPREPLY=($(compgen -W "
          + "\"\(bashMembers)\" -- \"$word\")); return ;;\n"
      case .file, nil: nil
      }
    }.joined()
  }

  private static func bashOptions(_ verb: Verb) -> String {
    "    \(verb.name)) options='\(words(verb.options + Table.options)) \(answersOfVerbs)' ;;\n"
  }

  private static func bashOperands(_ verb: Verb) -> String {
    guard let operand = verb.operands.first(where: { !isAny($0) }) else { return "" }
    let isLast = operand.most == 1 ? "[ $after = 0 ] && " : ""
    let words =
      switch operand.values {
      case .any: ""
      case .channels: "$(wormhole \"${place[@]}\" list --prefix \"$word\" 2>/dev/null)"
      case .members: bashMembers
      case .words(let words): words.joined(separator: " ")
      case .verbs: verbNames
      }
    return "    \(verb.name)) \(isLast)COMPREPLY=($(compgen -W \"\(words)\" -- \"$word\")) ;;\n"
  }

  private static let bashMembers =
    "$(wormhole \"${place[@]}\" members 2>/dev/null | cut -f 1)"

  // MARK: zsh

  private static var zsh: String {
    """
    #compdef wormhole
    # Completions of wormhole for zsh.
    _wormhole() {
      local -a general verbs
      general=(
    \(Table.options.map(zshOption).joined())\(zshAnswers)  )
      verbs=(
    \(Table.verbs.map { "    '\($0.name):\(quoted($0.summary))'\n" }.joined())  )
      local context state line
      typeset -A opt_args
      _arguments -C $general '1:verb:->verb' '*::word:->words' && return
      case $state in
        verb) _describe verb verbs ;;
        words)
          case $line[1] in
    \(Table.verbs.map(zshVerb).joined())      esac ;;
      esac
    }
    _wormhole_channels() {
      local -a place names
      [[ -n ${opt_args[--container]} ]] && place=(--container ${opt_args[--container]})
      [[ -n ${opt_args[--group]} ]] && place=(--group ${opt_args[--group]})
      names=(${(f)"$(wormhole $place list 2>/dev/null)"})
      compadd -a names
    }
    _wormhole_members() {
      local -a place names
      [[ -n ${opt_args[--container]} ]] && place=(--container ${opt_args[--container]})
      [[ -n ${opt_args[--group]} ]] && place=(--group ${opt_args[--group]})
      names=(${(f)"$(wormhole $place members 2>/dev/null | cut -f 1)"})
      compadd -a names
    }
    if [ "$funcstack[1]" = _wormhole ]; then _wormhole "$@"; else compdef _wormhole wormhole; fi

    """
  }

  private static func zshVerb(_ verb: Verb) -> String {
    let options = verb.options.map(zshOption).joined()
    let operands = verb.operands.map { operand in
      let values =
        switch operand.values {
        case .any: operand.kind == .command ? "_normal" : " "
        case .channels: "_wormhole_channels"
        case .members: "_wormhole_members"
        case .words(let words): "(\(words.joined(separator: " ")))"
        case .verbs: "(\(verbNames))"
        }
      let place = operand.most == 1 ? ":" : "*:"
      return "    '\(place)\(operand.name.lowercased()):\(values)'\n"
    }.joined()
    return "        \(verb.name)) _arguments $general \\\n"
      + (options + operands).split(separator: "\n").map { "      \($0) \\\n" }.joined()
      + "        ;;\n"
  }

  private static func zshOption(_ option: Option) -> String {
    let argument =
      switch option.argument {
      case .any(let name): ":\(name): "
      case .oneOf(let name, let words): ":\(name):(\(words.joined(separator: " ")))"
      case .file(let name): ":\(name):_files -/"
      case .member(let name): ":\(name):_wormhole_members"
      case nil: ""
      }
    return "    '--\(option.name)[\(quoted(option.help))]\(argument)'\n"
  }

  private static var zshAnswers: String {
    Table.answers.map { "    '\($0.name)[\(quoted($0.help))]'\n" }.joined()
  }

  /// Within single quotes, and within brackets or before a colon.
  private static func quoted(_ text: String) -> String {
    var quoted = ""
    for character in text {
      switch character {
      case "'": quoted += "'\\''"
      case ":", "[", "]": quoted += "\\" + String(character)
      default: quoted.append(character)
      }
    }
    return quoted
  }

  // MARK: Both

  private static var verbNames: String { Table.verbs.map(\.name).joined(separator: " ") }
  private static var answers: [String] { Table.answers.map(\.name) }
  private static var answersOfVerbs: String {
    answers.filter { $0 != "--version" }.joined(separator: " ")
  }

  private static func words(_ options: [Option]) -> String {
    options.map { "--" + $0.name }.joined(separator: " ")
  }

  private static func isAny(_ operand: Operand) -> Bool {
    if case .any = operand.values { true } else { false }
  }
}

extension Verb {
  static let completions = Verb(
    "completions", "print what makes a shell complete this command",
    [Operand("SHELL", .one, .words(Completions.Shell.allCases.map(\.rawValue)))], [],
    ["SHELL is bash or zsh. Channels and members are completed too, where a container is named."],
    [
      Example("eval \"$(wormhole completions bash)\"", "in ~/.bashrc"),
      Example("eval \"$(wormhole completions zsh)\"", "in ~/.zshrc, after compinit"),
    ]
  ) { invocation in
    let name = invocation.operands[0]
    guard let shell = Completions.Shell(rawValue: name) else {
      throw Failure.usage("cannot complete for '\(name)': bash and zsh are known")
    }
    try invocation.output.write(Array(Completions.script(for: shell).utf8))
    return 0
  }
}
