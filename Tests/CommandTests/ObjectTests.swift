import TestSupport
import TestTraits
import Testing
import WormholeCommandLine
import WormholePropertyLists
import WormholeSyscalls

@testable import WormholeCommand

/// What `--json` writes: the same keys for the same things in every verb, and null for what is
/// absent, as the manual page has it.
@Suite(.blocking, .notSanitized("about what a command prints")) struct ObjectTests {
  /// A line of each verb in each of its forms, and the name of the form.
  private static let lines: [(ObjectForm, String)] = [
    (.change, "put a one --json"),
    (.change, "put b '[1]' --type json --json"),
    (.change, "update n --add 1 --json"),
    (.change, "update a --exec 'tr a-z A-Z' --json"),
    (.channel, "get a --json"),
    (.channel, "list --json"),
    (.channel, "watch a --now --count 1 --json"),
    (.change, "clear a --json"),
    (.channel, "watch a --now --count 1 --json"),
    (.error, "get a --json"),
    (.error, "fly --json"),
    (.setting, "defaults write s k 1 --json"),
    (.setting, "defaults read s k --json"),
    (.setting, "defaults read s --json"),
    (.setting, "defaults watch s --now --count 1 --json"),
    (.setting, "defaults delete s k --json"),
    (.setting, "defaults delete s --json"),
    (.sent, "send --to w --id one 1 --json"),
    (.sent, "send --to w --from t two --json"),
    (.sent, "send --to w --lines --json <in"),
    (.sent, "send --to w --id file --file in --meta a=b --json"),
    (.queued, "queue w --json"),
    (.sent, "queue w --cancel one --json"),
    (.received, "receive --as w --count 1 --json"),
    (.received, "receive --as w --count 2 --files . --json"),
    (.context, "send --to w --from t --context open --json"),
    (.context, "queue w --contexts --json"),
    (.received, "receive --as w --contexts --count 1 --json"),
    (.sent, "send --to w --id bad --from t bad --json"),
    (.queued, "queue w --dead --json"),
    (.sent, "queue w --retry bad --json"),
    (.sent, "queue t --outcomes --json"),
    (.sent, "queue t --remove-outcomes --json"),
    (.member, "members --json"),
    (.start, "wake w --register --json -- true"),
    (.start, "wake w --show --json"),
    (.start, "wake w --forget --json"),
    (.start, "wake c --register --json -- wormhole reply --as c --exec cat"),
    (.member, "wake c --json"),
    (.answer, "request --to c hello --json"),
    (.notice, "post done --json"),
    (.pairing, "watchconnectivity state --json"),
    (
      .bridge,
      "bridge --shared-as g --nats nats://127.0.0.1:1 --timeout 0; wormhole bridge status --json"
    ),
    (.right, "bridge rights --machine 0123456789abcdef --shared-as g --json"),
    (.finding, "bridge doctor --nats nats://127.0.0.1:1 --json"),
    (.finding, "doctor --json"),
    (.status, "status --json"),
    (
      .event,
      "events --kind channel --count 1 --json >seen & cd \"$STAGE\"; until [ -s seen ]; do "
        + "wormhole put e 1; sleep 0.1; done; cat seen"
    ),
    (.lock, "lock l -- wormhole status --locks --json"),
    (
      .page,
      "serve --json >page & cd \"$STAGE\"; until grep -q } page; do sleep 0.05; done; "
        + "kill $(cat /proc/$!/task/$!/children) $!; cat page"
    ),
    (.removed, "remove member gone --json"),
  ]

  @Test func everyVerbWritesTheKeysOfItsForms() throws {
    let stage = try Stage()
    try stage.directory.write("a line\n", to: "in")
    defer { _ = try? stage.run("wormhole members --json | tr ',' '\\n' >/dev/null; kill $(cat c)") }
    var seen: Set<String> = []
    for (form, line) in Self.lines {
      try prepare(line, stage)
      let outcome = try stage.run("wormhole " + line)
      let text = form === ObjectForm.error ? outcome.errors : outcome.output
      let objects = text.split(separator: "\n").filter { $0.hasPrefix("{") }
      #expect(!objects.isEmpty, "\(line): \(outcome.errors)")
      for object in objects {
        #expect(keys(of: String(object)) == form.keys.map(\.name).sorted(), "\(line): \(object)")
      }
      seen.insert(form.name)
    }
    for form in ObjectForm.all where !seen.contains(form.name) {
      Issue.record("'lines' in ObjectTests has no command that writes the form '\(form.name)'")
    }
    let process = try stage.run("wormhole members --json | grep '\"member\":\"c\"'").output
    let number = process.firstMatch(of: /"process":([0-9]+)/).flatMap { Int32($0.1) }
    try Processes.send(.kill, to: try #require(number))
  }

  /// Input from other processes while a line runs, or before.
  private func prepare(_ line: String, _ stage: Stage) throws {
    if line.hasPrefix("queue w --dead") {
      try stage.makeDeadLetter(of: "w", id: "bad", by: "receive --as w")
    } else if line.hasPrefix("queue t --outcomes") {
      _ = try stage.run(
        "wormhole receive --as w --count 1; wormhole send --to w --from t --id o --wait o "
          + "--timeout 0; wormhole receive --as w --count 1")
    } else if line.hasPrefix("doctor") {
      _ = try stage.run("wormhole send --to w one")
    } else if line.hasPrefix("remove") {
      _ = try stage.run("wormhole receive --as gone --timeout 0")
    }
  }

  /// The keys of an object whose values contain no object with keys similar to its own.
  private func keys(of line: String) -> [String]? {
    // Null is not a property list's; here it only marks a place.
    let text = line.replacing(/:null([,}])/) { ":0\($0.1)" }.replacing(/:null([,}])/) {
      ":0\($0.1)"
    }
    guard case .dictionary(let object)? = try? JSONPropertyList.decode(Array(text.utf8)) else {
      return nil
    }
    return object.keys.sorted()
  }

  @Test func theSameKeyMeansTheSame() {
    var meanings: [String: Set<String>] = [:]
    for form in ObjectForm.all where form !== ObjectForm.error && form !== ObjectForm.finding {
      #expect(Set(form.keys.map(\.name)).count == form.keys.count, "\(form.name)")
      for (key, words) in form.keys { meanings[key, default: []].insert(words) }
    }
    // Keys whose description is more detailed in one form than in another.
    let known: Set = [
      "value", "sent", "kind", "from", "to", "id", "state", "attempt", "size", "file", "count",
      "delivery", "headers", "status", "reason", "program", "member", "channel", "version", "name",
      "machine", "process", "members", "generation", "channels", "queues",
    ]
    let several = meanings.filter { $0.value.count > 1 }.keys
    #expect(Set(several).subtracting(known).isEmpty, "\(several)")
  }

  @Test func theListHoldsEachForm() throws {
    let path = "Sources/WormholeCommand/Forms.swift"
    let file = try Descriptor.open(path: Programs.source + "/" + path, [.readOnly])
    let text = String(decoding: try file.contents(), as: UTF8.self)
    let names = text.matches(of: /static let (\w+) = ObjectForm\(/).map(\.output.1)
    #expect(names.count > 15, "they were found")
    let list = try #require(text.split(separator: "    ]\n").first)
    for name in names where !list.contains(".\(name),") {
      Issue.record("\(path): the list 'all' does not contain '.\(name)'")
    }
  }

  @Test func theManualHasThemAll() {
    let page = Manual(.wormhole).page
    for form in ObjectForm.all {
      #expect(page.contains(".SS \(form.name)\n"))
      for (key, _) in form.keys { #expect(page.contains("\\fB\(key)\\fR")) }
    }
  }
}
