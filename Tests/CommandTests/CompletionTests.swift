import TestSupport
import TestTraits
import Testing
import WormholeCommandLine
import WormholeSyscalls

@testable import WormholeCommand

/// Completions, requested in the shells for which they are made.
@Suite(.blocking, .notSanitized("about what a command prints"))
struct CompletionTests {
  /// The completions of bash for a command line whose last word is being typed.
  private func offers(_ words: [String], in stage: Stage) throws -> Set<String> {
    let line = words.joined(separator: " ")
    let script = """
      eval "$(wormhole completions bash)"
      complete -p wormhole >/dev/null || exit 9
      COMP_LINE='\(line)' COMP_POINT=\(line.utf8.count)
      compopt() { echo "($2)"; }
      _wormhole wormhole '\(words.last!)'
      printf '%s\\n' "${COMPREPLY[@]}"
      """
    let outcome = try stage.run("exec bash -c \"$SCRIPT\"", environment: ["SCRIPT=\(script)"])
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
    #expect(outcome.errors == "")
    return Set(outcome.output.split(separator: "\n").map(String.init))
  }

  /// Bash passes the line and its last word; another caller may pass any words.
  @Test func anyTwoWordsAreTakenForALine() throws {
    for (line, part) in [("get", "send"), ("", "x"), ("se", "nd"), ("wormhole ge", "wormhole ge")] {
      _ = Completions(.wormhole).offers(for: .bash, [line, part])
    }
  }

  /// The words after `--` are a command with its arguments, for a verb that starts one.
  @Test func anotherCommandFollowsTheDashes() {
    func kind(_ words: String...) -> Proposal.Kind { Proposal(.wormhole, words).kind }
    #expect(kind("lock", "build", "--", "ma") == .command)
    #expect(kind("lock", "build", "--timeout", "5", "--", "make", "a") == .command)
    #expect(kind("lock", "build") == .words)
    #expect(kind("put", "speed", "--", "5") == .words)
  }

  @Test func aValueBehindAnEqualSignIsOfferedWithItsOption() {
    let offers = Proposal(.wormhole, ["put", "speed", "--type="]).words.map(\.text)
    #expect(offers == ValueType.allCases.map { "--type=" + $0.rawValue })
    #expect(Proposal(.wormhole, ["put", "--type", ""]).words.map(\.text).contains("string"))
  }

  @Test func bashOffersVerbsAndOptions() throws {
    let stage = try Stage()
    let verbs = Set(Table.wormhole.verbs.map(\.name))
    #expect(try offers(["wormhole", ""], in: stage) == verbs)
    #expect(try offers(["wormhole", "--json", ""], in: stage) == verbs)
    #expect(try offers(["wormhole", "--container", "somewhere", ""], in: stage) == verbs)
    #expect(try offers(["wormhole", "he"], in: stage) == ["help"])
    #expect(try offers(["wormhole", "help", "comp"], in: stage) == ["completions"])
    #expect(try offers(["wormhole", "unknown", ""], in: stage).isEmpty)
    let general = Set(Table.wormhole.options.map { "--" + $0.name })
    for verb in Table.wormhole.verbs {
      let own = Set(verb.options.map { "--" + $0.name })
      let offered = try offers(["wormhole", verb.name, "--"], in: stage)
      #expect(offered == own.union(general).union(["--help"]), "\(verb.name)")
    }
    let left = try offers(["wormhole", "put", "--power", "--"], in: stage)
    #expect(!left.contains("--power") && left.contains("--type"))
    let again = try offers(["wormhole", "wake", "--register", "--env", "A=b", "--"], in: stage)
    #expect(again.contains("--env") && !again.contains("--register"))
  }

  @Test func bashOffersIdentifiers() throws {
    let stage = try Stage()
    _ = try stage.run(
      "for i in one two; do wormhole send --to tv --id $i x; done; "
        + "wormhole send --queue jobs --id job x; "
        + "wormhole receive --as tv --attempts 1 --count 1 --timeout 1s --exec false")
    #expect(try offers(["wormhole", "queue", "jobs", "--cancel", ""], in: stage) == ["job"])
    let dead = try offers(["wormhole", "queue", "tv", "--retry", ""], in: stage)
    #expect(!dead.isEmpty && dead.isSubset(of: ["one", "two"]))
    #expect(try offers(["wormhole", "queue", "tv", "--discard", ""], in: stage) == dead)
    let waiting = try offers(["wormhole", "queue", "tv", "--cancel", ""], in: stage)
    #expect(waiting == Set(["one", "two"]).subtracting(dead))
    #expect(try offers(["wormhole", "queue", "nobody", "--cancel", ""], in: stage).isEmpty)
  }

  /// The line does not state the group's sharing when names are requested, and nothing is at stake.
  @Test func bashOffersTheNamesOfAGroupsContainer() throws {
    let stage = try Stage()
    _ = try stage.run("wormhole put speed 1 --group-shared")
    #expect(try offers(["wormhole", "get", "sp"], in: stage) == ["speed"])
  }

  @Test func bashOffersWhatAnOptionTakesAndChannels() throws {
    let stage = try Stage()
    _ = try stage.run("wormhole put speed 1; wormhole put seat.a 1; wormhole put seat.b 1")
    #expect(
      try offers(["wormhole", "put", "x", "--type", ""], in: stage)
        == Set(ValueType.allCases.map(\.rawValue)))
    #expect(try offers(["wormhole", "get", "seat."], in: stage) == ["seat.a", "seat.b"])
    #expect(try offers(["wormhole", "watch", "speed", "s"], in: stage).count == 3)
    #expect(try offers(["wormhole", "put", "speed", "s"], in: stage).isEmpty)
    #expect(try offers(["wormhole", "completions", ""], in: stage) == ["bash", "fish", "zsh"])
    #expect(
      try offers(["wormhole", "defaults", ""], in: stage)
        == Set(DefaultsAction.allCases.map(\.rawValue)))
    for name in ["watch", "tv"] { _ = try stage.run("wormhole receive --as \(name) --timeout 0") }
    #expect(try offers(["wormhole", "queue", ""], in: stage) == ["tv", "watch"])
    #expect(try offers(["wormhole", "send", "--to", "w"], in: stage) == ["watch"])
    #expect(try offers(["wormhole", "send", "--file", ""], in: stage) == ["(default)"])
    #expect(try offers(["wormhole", "receive", "--files", ""], in: stage) == ["(dirnames)"])
    let elsewhere = ["wormhole", "--container", "none", "get", ""]
    #expect(try offers(elsewhere, in: stage).isEmpty)
  }

  @Test func whateverHasANameIsOffered() throws {
    let stage = try Stage()
    _ = try stage.run(
      """
      wormhole lock till -- true; wormhole defaults write cinema rows 12; wormhole post opened
      wormhole defaults write cinema name odeon; wormhole receive --as usher --timeout 0
      """)
    #expect(try offers(["wormhole", "lock", ""], in: stage) == ["till"])
    #expect(try offers(["wormhole", "defaults", "read", ""], in: stage) == ["cinema"])
    #expect(
      try offers(["wormhole", "defaults", "read", "cinema", ""], in: stage) == ["name", "rows"])
    #expect(try offers(["wormhole", "remove", "suite", ""], in: stage) == ["cinema"])
    #expect(try offers(["wormhole", "observe", "o"], in: stage) == ["opened"])
    #expect(try offers(["wormhole", "post", ""], in: stage) == ["opened"])
    #expect(try offers(["wormhole", "wake", ""], in: stage) == ["usher"])
  }

  // MARK: Hostile names

  private static let names = [
    "$(touch ran)", "`touch ran`", "it's \"quoted\"", "two words", "semi;touch ran", "a&b|c<d>e",
    "star*?[x]", "bang!x!!", "back\\slash", "new\nline", "tab\there", "#hash", "~tilde", "{a,b}",
    "dollar$HOME${HOME}", "col:on=eq@at", "ünïcode", "(paren)", "trailing ", "'", "a\\'b\"c",
  ]

  /// Types lines into a real shell, with a real terminal, each once the shell is ready for it.
  private func type(
    _ lines: [String], into shell: [String], in stage: Stage
  ) throws -> String {
    try stage.directory.write(lines.joined(separator: "\n") + "\n", to: "lines")
    let words = shell.map { "'\($0)'" }.joined(separator: " ")
    let outcome = try stage.run(
      "exec python3 -c \"$TYPIST\" \(words) <lines",
      environment: [
        "TYPIST=\(typist)", "TERM=dumb", "HOME=\(stage.directory.path)", "HISTFILE=",
      ])
    #expect(outcome.errors == "")
    return outcome.output
  }

  /// Ends after printing the output of the shell.
  private var typist: String {
    """
    import os, sys
    lines = sys.stdin.read().split("\\n")[:-1]
    process, terminal = os.forkpty()
    if process == 0: os.execvp(sys.argv[1], sys.argv[1:])
    said = b""
    def more():
        global said
        try: part = os.read(terminal, 65536)
        except OSError: part = b""
        said += part
        return part
    for number, line in enumerate(lines):
        while said.count(b"READY") <= number:
            if not more(): break
        os.write(terminal, line.replace("<TAB>", "\\t").encode() + b"\\n")
    while more(): pass
    os.waitpid(process, 0)
    sys.stdout.buffer.write(said)
    """
  }

  /// Each name is alone in a container, so that it is the only completion.
  private func completes(
    _ names: [String], _ quotes: [String], in shell: [String], _ stage: Stage
  ) throws {
    var lines: [String] = []
    for (index, name) in names.enumerated() {
      let outcome = try run(
        Programs.built("wormhole"),
        ["--container", stage.directory.path + "/c\(index)", "put", name, "found-\(index)-"])
      #expect(outcome.status == .exited(0))
      lines += quotes.map { "wormhole --container c\(index) get \($0)<TAB>" }
    }
    let said = try type(lines + ["exit"], into: shell, in: stage)
    for (index, name) in names.enumerated() {
      let count = said.split(separator: "found-\(index)-", omittingEmptySubsequences: false).count
      #expect(count - 1 == quotes.count, "\(name) in \(shell[0]): \(said.debugDescription)")
    }
    #expect(try !stage.directory.descriptor.names().contains("ran"))
  }

  /// Returns nil, and prints a notice, where completions cannot be tried.
  private func stage(for shell: String, _ settings: String) throws -> Stage? {
    for program in ["python3", shell] where Programs.installed(program) == nil {
      skip("completions of \(shell) on a terminal", missing: program)
      return nil
    }
    let stage = try Stage()
    try stage.directory.write(settings, to: "settings")
    return stage
  }

  @Test func bashRunsAndBreaksNothing() throws {
    let settings = """
      PS1='READY '
      set -o histexpand
      eval "$(wormhole completions bash)"

      """
    guard let stage = try stage(for: "bash", settings) else { return }
    try completes(
      Self.names, ["", "'", "\""], in: ["bash", "--rcfile", "settings", "-i"], stage)
  }

  @Test func zshRunsAndBreaksNothing() throws {
    let settings = """
      PS1='READY '
      unsetopt promptsp promptcr
      autoload -U compinit && compinit -u -D
      eval "$(wormhole completions zsh)"

      """
    guard let stage = try stage(for: "zsh", settings) else { return }
    try stage.directory.write(settings, to: ".zshrc")
    try completes(Self.names, ["", "'", "\""], in: ["zsh", "-d", "-i"], stage)
  }

  /// The command behind the dashes has its own words, of which the first one is its name.
  @Test func zshCompletesAnotherCommandAsAtTheStartOfALine() throws {
    let settings = """
      PS1='READY '
      unsetopt promptsp promptcr
      autoload -U compinit && compinit -u -D
      eval "$(wormhole completions zsh)"
      path+=("$HOME/programs")
      _zebra() { compadd -- "word-$CURRENT-of-$#words" }
      compdef _zebra zebra-opened

      """
    guard let stage = try stage(for: "zsh", settings) else { return }
    try stage.directory.write(settings, to: ".zshrc")
    let made = try stage.run(
      """
      mkdir programs && cd programs
      printf '#!/bin/sh\\necho "ran-$*-"\\n' >zebra-opened && chmod 700 zebra-opened
      """)
    #expect(made.status == .exited(0), "\(made.errors)")
    let lines = [
      "wormhole lock till -- zebra-o<TAB>",
      "wormhole lock till --timeout 5s -- zebra-opened one <TAB>", "exit",
    ]
    let said = try type(lines, into: ["zsh", "-d", "-i"], in: stage)
    #expect(said.contains("ran--"), "the name: \(said.debugDescription)")
    #expect(said.contains("ran-one word-3-of-3-"), "an argument: \(said.debugDescription)")
  }

  @Test func fishRunsAndBreaksNothing() throws {
    let settings = """
      function fish_prompt; printf 'READY '; end
      wormhole completions fish | source

      """
    guard let stage = try stage(for: "fish", settings) else { return }
    // Fish reads line by line and cannot hold these names.
    let names = Self.names.filter { !$0.contains("\n") && !$0.contains("\t") }
    try completes(
      names, ["", "'", "\""], in: ["fish", "--no-config", "-C", "source settings", "-i"], stage)
  }
}
