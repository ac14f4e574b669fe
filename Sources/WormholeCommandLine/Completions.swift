/// Scripts for the completion of this command in shells.
///
/// The scripts ask the command itself: a name can be any text, and the shell must never execute the
/// content of a name. So the command prints names as data, and the shell quotes them; for bash,
/// which does not quote completions, this type does.
package struct Completions {
  private let table: Table

  package init(_ table: Table) { self.table = table }

  package enum Shell: String, CaseIterable { case bash, fish, zsh }

  package func script(for shell: Shell) -> String {
    switch shell {
    case .bash: Self.bash.replacing("COMMAND", with: table.name)
    case .fish: Self.fish.replacing("COMMAND", with: table.name)
    case .zsh: Self.zsh.replacing("COMMAND", with: table.name)
    }
  }

  /// Returns the completions for the end of a line, in the form that the script for the shell
  /// reads.
  ///
  /// - Parameter words: the arguments from the script: for bash the line and the last word as bash
  ///   sees it, for the other shells the words after the command's name.
  package func offers(for shell: Shell, _ words: [String]) -> [UInt8] {
    switch shell {
    case .bash:
      let line = BashLine(words.first ?? "")
      let proposal = Proposal(table, Array(line.words.dropFirst()))
      let part = words.dropFirst().first ?? ""
      let texts = proposal.words.map { line.completed($0.text, replacing: part) }
      return Self.ended([proposal.kind.rawValue] + texts, by: "\0")
    case .fish:
      let proposal = Proposal(table, words)
      // Fish reads lines, and takes the text after a tab for a description.
      let whole = proposal.words.filter { word in
        !word.text.utf8.contains { $0 < 0x20 }
      }
      return Self.ended([proposal.kind.rawValue] + whole.map { "\($0.text)\t\($0.help)" }, by: "\n")
    case .zsh:
      let proposal = Proposal(table, words)
      return Self.ended(
        [proposal.kind.rawValue] + proposal.words.flatMap { [$0.text, Self.shown($0)] }, by: "\0")
    }
  }

  private static func ended(_ texts: [String], by end: String) -> [UInt8] {
    Array(texts.map { $0 + end }.joined().utf8)
  }

  private static func shown(_ word: Proposal.Word) -> String {
    let text = (try? word.text.inOneLine()) ?? word.text
    return word.help.isEmpty ? text : "\(text)  -- \(word.help)"
  }

  private static let bash = """
    # Completions of COMMAND for bash.
    _COMMAND() {
      local -a offered=()
      local index
      mapfile -d '' -t offered < <(
        COMMAND completions bash -- "${COMP_LINE:0:COMP_POINT}" "$2" 2>/dev/null)
      COMPREPLY=("${offered[@]:1}")
      case ${offered[0]} in
        files) compopt -o default ;;
        directories) compopt -o dirnames ;;
        command)
          for ((index = 1; index < COMP_CWORD; index++)); do
            [[ ${COMP_WORDS[index]} == -- ]] && break
          done
          if declare -F _command_offset >/dev/null; then
            _command_offset $((index + 1))
          elif ((index + 1 == COMP_CWORD)); then
            compopt -o filenames
            mapfile -t COMPREPLY < <(compgen -c -- "$2")
          else
            compopt -o default
          fi ;;
      esac
    }
    complete -F _COMMAND COMMAND

    """

  private static let fish = """
    # Completions of COMMAND for fish.
    function __COMMAND_offers
      set -l before (commandline -opc)
      set -l word (commandline -ct)
      # Fish itself picks what fits, and takes the quotes off for that.
      string match -q -- '-*' $word; or set word ''
      set -l offered (COMMAND completions fish -- $before[2..-1] $word 2>/dev/null)
      switch "$offered[1]"
        case files
          __fish_complete_path (commandline -ct)
        case directories
          __fish_complete_directories (commandline -ct)
        case command
          set -l place (contains -i -- -- $before)
          __fish_complete_subcommand --fcs-skip=$place
        case words
          printf '%s\\n' $offered[2..-1]
      end
    end
    complete -c COMMAND -f -a '(__COMMAND_offers)'

    """

  private static let zsh = """
    #compdef COMMAND
    # Completions of COMMAND for zsh.
    _COMMAND() {
      local -a before offered names shown
      local word='' place
      before=("${(@Q)words[2,CURRENT-1]}")
      # Zsh itself picks what fits.
      [[ $PREFIX == -* ]] && word=$PREFIX
      offered=("${(@0)$(COMMAND completions zsh -- "${before[@]}" "$word" 2>/dev/null)}")
      case $offered[1] in
        files|directories)
          compset -P '--*='
          if [[ $offered[1] == files ]]; then _files; else _files -/; fi ;;
        command)
          place=${words[(i)--]}
          shift $place words
          (( CURRENT -= place ))
          _normal ;;
        words)
          for ((place = 2; place < $#offered; place += 2)); do
            names+=("$offered[place]")
            shown+=("$offered[place+1]")
          done
          compadd -l -d shown -a names ;;
      esac
    }
    if [ "$funcstack[1]" = _COMMAND ]; then _COMMAND "$@"; else compdef _COMMAND COMMAND; fi

    """
}

extension Verb {
  /// - Parameter what: the completed parts of the container, as a continuation of the details.
  package static func completions(of name: String, _ what: String) -> Verb {
    Verb(
      "completions", "print the completion script for a shell",
      [
        Operand("SHELL", .one, .words(Completions.Shell.allCases.map(\.rawValue))),
        Operand("WORD", .optionalCommand),
      ], [],
      [
        "SHELL is bash, fish or zsh. " + what,
        "With WORD, prints the completions at the end of a command line. The scripts call this "
          + "verb: bash with the whole line and its last word as bash splits it, fish and zsh with "
          + "the words after the command's name.",
      ],
      [
        Example("eval \"$(\(name) completions bash)\"", "in ~/.bashrc"),
        Example("\(name) completions fish | source", "in ~/.config/fish/config.fish"),
        Example("eval \"$(\(name) completions zsh)\"", "in ~/.zshrc, after compinit"),
      ],
      action: "print the completions"
    ) { invocation in
      let name = invocation.operands[0]
      guard let shell = Completions.Shell(rawValue: name) else {
        throw Failure.usage("cannot complete for '\(name)': the shells are bash, fish and zsh")
      }
      let completions = Completions(invocation.table)
      let isAsked = !invocation.command.isEmpty
      try invocation.output.write(
        isAsked
          ? completions.offers(for: shell, invocation.command)
          : Array(completions.script(for: shell).utf8))
      return 0
    }
  }
}
