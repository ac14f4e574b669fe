import FoundationEssentials
import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

@testable import WormholeCommand

/// P9 for numbers: one number in a container is extreme, and no process that looks at the container
/// is ended by it, or hangs.
@Suite(.blocking, .notSanitized("about processes")) struct ExtremeNumberTests {
  private let stage: Stage
  private var root: String { stage.directory.path + "/root" }
  /// The user's container, which has the accesses to files, too.
  private var container: String { Self.container(root) }

  private static func container(_ root: String) -> String {
    [root, "wormhole.user", ".wormhole"].joined(separator: "/")
  }

  init() throws {
    stage = try Stage()
    let made = try stage.run(Self.furniture, environment: Self.environment(root))
    #expect(made.status == .exited(0), "\(made.errors)")
    try furnishBridge()
    try furnishCopy()
  }

  private static func environment(_ root: String) -> [String] {
    [
      "WORMHOLE_ROOT=\(root)", "WORMHOLE_CONTAINER=\(container(root))",
      "SWIFT_BACKTRACE=enable=no",
    ]
  }

  // MARK: The sound container

  private static let furniture = """
    set -e; mkdir root; wormhole coordinate write file -- true
    wormhole put speed 88 --ttl 1h; wormhole put film one --power; wormhole put film two --power
    wormhole put gone 1; wormhole clear gone --erase
    wormhole defaults write cinema rows 12 --type json; echo content >file
    wormhole send --to bob bad; wormhole send --queue jobs bad
    dead() { [ -n "$(ls "$WORMHOLE_CONTAINER/$1/dead" 2>/dev/null)" ]; }
    until dead members/bob; do
      wormhole receive --as bob --attempts 1 --timeout 0.3 --exec 'exit 1' || true
    done
    until dead queues/jobs; do
      wormhole work jobs --attempts 1 --timeout 0.3 --exec 'exit 1' || true
    done
    wormhole send --to bob one; wormhole send --to bob two --ttl 1h --urgent
    wormhole send --to bob later --delay 1h; wormhole send --to bob --file file
    wormhole send --to bob --from al fresh --context; printf '1\\n2\\n' | \
    wormhole send --to bob --lines
    wormhole send --queue jobs a --ordering-key k; wormhole send --queue jobs b --delay 1h
    wormhole send --queue jobs c --ttl 1h; wormhole lock build -- true; wormhole post news
    wormhole wake printer --register -- false; wormhole wake printer --timeout 20 || true
    wormhole watchconnectivity complication on
    wormhole lock build -- wormhole coordinate write file -- cp -a root held
    rm -r root; mv held root
    """

  private static let (machine, flow) = ("0123456789abcdef", "fedcba9876543210")

  private func write(_ list: PropertyListValue, to path: String) throws {
    let file = try Descriptor.open(path: path, [.writeOnly, .create, .truncate], mode: 0o600)
    try file.write(BinaryEncoder().encode(list))
  }

  /// What a bridge leaves.
  private func furnishBridge() throws {
    let storage = try SharedContainer(directory: container).storage
    for direction in ["out", "in"] { _ = try storage.bridge([direction, Self.machine]) }
    let folder = container + "/bridge"
    let (out, received) = ("\(folder)/out/\(Self.machine)", "\(folder)/in/\(Self.machine)")
    let chain = PropertyListValue.string(String(FowlerHash.start, radix: 16))
    try write(
      ["machine": "000000000000000a", "group": "g", "generation": 3, "nonces": ["x"]],
      to: folder + "/place.plist")
    try write(
      [
        "machine": "000000000000000a", "group": "g", "state": "serving", "generation": 3,
        "at": .date(Date()), "process": 1, "clock": 2.5,
        "machines": [
          Self.machine: [
            "next": 5, "confirmed": 2, "received": 7, "gaps": 1, "running": 2,
            "oldest": .date(Date()), "interval": 1.0,
          ]
        ],
        "channels": ["far": ["version": 3, "published": 2]], "queues": ["jobs": ["lent": 3]],
      ], to: folder + "/status.plist")
    try write(["flow": .string(Self.flow), "next": 3, "hash": chain], to: out + "/flow.plist")
    try write(
      [
        "flow": .string(Self.flow), "first": 3, "before": chain,
        "entries": [["k": "m", "to": "bob", "N": "1,0000100001f3d77a2b4c,r01,3f9a0c11d2e84b67,"]],
      ], to: out + "/0000000000000003")
    try write(
      [
        "flow": .string(Self.flow), "generation": 1, "number": 4, "hash": chain, "placing": [],
      ], to: received + "/cursor.plist")
  }

  /// A channel whose home is another machine.
  private func furnishCopy() throws {
    let carrier = try Carrier(SharedContainer(directory: container))
    let content = Carrier.ChannelContent(
      version: 3, sent: Date(), writer: "al", value: 7, until: Date().addingTimeInterval(3600))
    try carrier.store(content, of: "far", from: Self.machine, changesTo: nil)
  }

  // MARK: Looking at it

  /// The verbs read the container, and then change it.
  ///
  /// The script writes a line for each process that a signal has ended, or that has not ended.
  private static let look = #"""
    look() {
      timeout -k 1 90 wormhole "$@" >/dev/null 2>"$LOOK/$n"; status=$?
      if [ $status -ge 128 ] || [ $status = 124 ]; then
        echo "$status: $*: $(tail -n 3 "$LOOK/$n")"
      fi
    }
    n=0; LOOK=$WORMHOLE_CONTAINER.look; mkdir "$LOOK"
    while read -r line; do
      if [ -z "$line" ]; then wait; continue; fi
      n=$((n+1)); eval "look $line" </dev/null &
    done <<'END'
    status --json
    status
    doctor
    members --json
    queue bob --json
    queue bob --dead
    queue bob --contexts
    queue jobs --queue
    dump --messages
    get speed film far --json
    watch speed --now --count 9 --timeout 0.3
    watch far film --now --count 9 --timeout 0.3
    events --timeout 0.3
    bridge status
    bridge status --json
    bridge doctor --nats nats://127.0.0.1:1 --open-server --timeout 0

    receive --as bob --attempts 2 --timeout 0.3 --exec true
    work jobs --timeout 0.3 --exec true
    put film 3
    put speed 4 --ttl 1s
    defaults write cinema rows 13
    wake printer --timeout 0.1
    lock build -- true
    coordinate write file -- true
    send --to bob more
    send --queue jobs more
    remove channel gone

    queue bob --purge --older-than 1s
    doctor --repair
    END
    wait; rm -r "$LOOK"
    """#

  /// Looks at a copy of the container that was changed; returns what has failed.
  private func failures(_ number: Int, _ change: (String) throws -> Void) throws -> String {
    let path = stage.directory.path + "/copy\(number)"
    #expect(try run("cp", ["-a", root, path]).status == .exited(0))
    defer { _ = try? run("rm", ["-r", path]) }
    try change(Self.container(path))
    let outcome = try stage.run(Self.look, environment: Self.environment(path))
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
    return outcome.output
  }

  // MARK: The sweep

  /// A number of the container, and how it becomes extreme.
  private struct Change {
    let what: String
    let make: (_ container: String) throws -> Void
  }

  private func files() throws -> [String] {
    try run("find", [container, "-type", "f", "!", "-path", "*/lock/*"]).output
      .split(separator: "\n").map { String($0.dropFirst(container.count + 1)) }.sorted()
  }

  private func changes() throws -> [Change] {
    var changes: [Change] = []
    for file in try files() {
      let bytes = try Descriptor.open(path: "\(container)/\(file)", [.readOnly]).contents()
      if let list = try? BinaryPropertyList.decode(bytes) {
        for variant in ExtremeNumber.variants(of: list) {
          changes.append(
            Change(what: "\(file)\(variant)") { try write(variant.list, to: "\($0)/\(file)") })
        }
      }
      let folder = file.lastIndex(of: "/").map { String(file[...$0]) } ?? ""
      for name in ExtremeNumber.names(of: String(file.dropFirst(folder.count))) {
        changes.append(
          Change(what: "\(file) is \(name)") {
            _ = try run("mv", ["\($0)/\(file)", "\($0)/\(folder)\(name)"])
          })
      }
      for time in ExtremeNumber.times {
        changes.append(
          Change(what: "\(file) of \(time)") {
            _ = try run("touch", ["-d", time, "\($0)/\(file)"])
          }
        )
      }
    }
    return changes
  }

  private func look(_ changes: some Collection<Change>) throws {
    for (number, change) in changes.enumerated() {
      let failures = try failures(number, change.make)
      #expect(failures == "", "\(change.what)")
    }
  }

  @Test func noNumberEndsAProcess() throws {
    let changes = try changes()
    #expect(changes.count > 500)
    #expect(changes.contains { $0.what.hasPrefix("system/coordination/running/") })
    var random = SeededRandom(seed: TestRun.seed)
    try look(TestRun.isLong ? changes[...] : changes.shuffled(using: &random).prefix(6))
  }

  /// Each of these numbers would end a process if it were trusted.
  private static let dangerous = [
    ("channels/speed/value.plist", ".until = date 1e+308"),
    ("queues/jobs/inbox/", ".sent = date -1e+308"),
    ("bridge/status.plist", ".clock = real 1e+308"),
    ("bridge/status.plist", ".oldest = date -1e+308"),
    ("bridge/status.plist", ".next = \(Int.min)"),
    ("bridge/out/", ".first = \(Int.max)"),
  ]

  @Test func noDangerousNumberEndsAProcess() throws {
    let all = try changes()
    try look([Change(what: "nothing", make: { _ in })])
    for (file, number) in Self.dangerous {
      let found = all.filter { $0.what.hasPrefix(file) && $0.what.hasSuffix(number) }
      try #require(!found.isEmpty, "\(file) \(number)")
      try look(found.prefix(1))
    }
  }

  /// A file with a hole may be as large as any file can be, and so may a second one.
  @Test func sizesOfAnyFilesAreAdded() throws {
    guard let disk = try TestFileSystem.make(.memory, for: "sizes of any files") else { return }
    let container = try SharedContainer(directory: disk.path + "/c")
    for name in "ab" {
      try container.channel("\(name)", of: Int.self).put(1)
      try container.peer("\(name)").send(1)
      try container.queue("\(name)").send(1)
    }
    let found = try run("find", [container.directory, "-path", "*/inbox/*", "-type", "f"])
    let values = ["a", "b"].map { "\(container.directory)/channels/\($0)/value.plist" }
    let files = found.output.split(separator: "\n").map(String.init) + values
    try #require(files.count == 6)
    for path in files { try Descriptor.open(path: path, [.writeOnly]).truncate(to: .max) }
    // A second message for each receiver, of the same size.
    for path in files.dropLast(2) {
      let file = try Descriptor.open(
        path: path.replacing(",n01,", with: ",n01,0"), [.writeOnly, .create], mode: 0o600)
      try file.truncate(to: .max)
    }
    let rows = try StatusReport(container).bareLines()
    #expect(rows.contains("channels\t2\t\(Int.max)"), "\(rows)")
    #expect(rows.contains { $0.hasPrefix("space\t\(Int.max)\t") }, "\(rows)")
  }
}
