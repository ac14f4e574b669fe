import Syscalls
import TestSupport
import Testing

@testable import WormholeCommand

/// Completions, asked for in the shells they are for.
@Suite struct CompletionTests {
  /// What bash offers for a command line whose last word is being typed.
  private func offers(_ words: [String], in stage: Stage) throws -> Set<String> {
    let line = words.map { "'\($0)'" }.joined(separator: " ")
    let script = """
      eval "$(wormhole completions bash)"
      complete -p wormhole >/dev/null || exit 9
      COMP_WORDS=(\(line)) COMP_CWORD=\(words.count - 1)
      _wormhole
      printf '%s\\n' "${COMPREPLY[@]}"
      """
    let outcome = try stage.run("exec bash -c \"$SCRIPT\"", environment: ["SCRIPT=\(script)"])
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
    #expect(outcome.errors == "")
    return Set(outcome.output.split(separator: "\n").map(String.init))
  }

  @Test func bashOffersVerbsAndOptions() throws {
    let stage = try Stage()
    let verbs = Set(Table.verbs.map(\.name))
    #expect(try offers(["wormhole", ""], in: stage) == verbs)
    #expect(try offers(["wormhole", "--json", ""], in: stage) == verbs)
    #expect(try offers(["wormhole", "--container", "somewhere", ""], in: stage) == verbs)
    #expect(try offers(["wormhole", "he"], in: stage) == ["help"])
    #expect(try offers(["wormhole", "help", "comp"], in: stage) == ["completions"])
    let general = Set(Table.options.map { "--" + $0.name })
    for verb in Table.verbs {
      let own = Set(verb.options.map { "--" + $0.name })
      let offered = try offers(["wormhole", verb.name, "--"], in: stage)
      #expect(offered == own.union(general).union(["--help"]), "\(verb.name)")
    }
  }

  @Test func bashOffersWhatAnOptionTakesAndChannels() throws {
    let stage = try Stage()
    _ = try stage.run("wormhole put speed 1; wormhole put seat.a 1; wormhole put seat.b 1")
    #expect(
      try offers(["wormhole", "put", "x", "--type", ""], in: stage)
        == Set(ValueType.allCases.map(\.rawValue)))
    #expect(try offers(["wormhole", "get", "seat."], in: stage) == ["seat.a", "seat.b"])
    #expect(try offers(["wormhole", "watch", "speed", "s"], in: stage).count == 3)
    #expect(try offers(["wormhole", "get", "speed", "s"], in: stage).isEmpty)
    #expect(try offers(["wormhole", "completions", ""], in: stage) == ["bash", "zsh"])
    #expect(
      try offers(["wormhole", "defaults", ""], in: stage)
        == Set(DefaultsAction.allCases.map(\.rawValue)))
    for name in ["watch", "tv"] { _ = try stage.run("wormhole receive --as \(name) --timeout 0") }
    #expect(try offers(["wormhole", "queue", ""], in: stage) == ["tv", "watch"])
    #expect(try offers(["wormhole", "send", "--to", "w"], in: stage) == ["watch"])
    let elsewhere = ["wormhole", "--container", "none", "get", ""]
    #expect(try offers(elsewhere, in: stage).isEmpty)
  }

  @Test func zshTakesItsScript() throws {
    guard Programs.installed("zsh") != nil else {
      skip("completions of zsh", because: "there is no zsh")
      return
    }
    let stage = try Stage()
    let script = """
      autoload -U compinit && compinit -u -D
      eval "$(wormhole completions zsh)"
      print -r -- $_comps[wormhole]
      whence -w _wormhole _wormhole_channels _wormhole_members
      """
    let outcome = try stage.run("exec zsh -f -c \"$SCRIPT\"", environment: ["SCRIPT=\(script)"])
    #expect(outcome.errors == "")
    #expect(
      outcome.output == "_wormhole\n_wormhole: function\n_wormhole_channels: function\n"
        + "_wormhole_members: function\n")
  }
}
