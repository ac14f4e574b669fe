import FoundationEssentials
import Wormhole
import WormholeBridge
import WormholeCommandLine
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls
import WormholeWeb

/// The state of a container as the page shows it, each part bounded.
///
/// The library's watchers report changed channels and members. The rest is read twice a second, and
/// only while a page looks: reading costs the programs that use the container nothing, because it
/// takes no lock and wakes no watcher.
final class Board: Sendable {
  /// The entries of each list; a page says how many more there are.
  private static let most = 200

  private let container: SharedContainer
  private let server: WebServer
  private let allowsChanges: Bool
  /// Earlier changes are no events.
  private let started = Date()
  private let state = Monitor(State())

  fileprivate typealias Lists = [String: [PropertyListValue]]
  fileprivate struct State {
    var isDue = true
    var channels: [String: PropertyListValue] = [:]
    /// The rows of the other lists, as they were last read.
    var rows: Lists = ["members": [], "queues": [], "machines": []]
    /// What was listed last, to tell what has changed.
    var before: [String: String] = [:]
    var events: [PropertyListValue] = []
    var last = ""
  }

  init(_ container: SharedContainer, _ server: WebServer, allowsChanges: Bool) throws {
    self.container = container
    self.server = server
    self.allowsChanges = allowsChanges
    server.onLook { [weak self] in self?.look() }
    try container.watch(prefix: "", of: PropertyListValue.self) { [weak self] in
      self?.note($0)
    } failure: { [weak self] error in
      self?.note(event: "a channel cannot be read: \(error)")
    }
    try container.watchMembers { [weak self] _ in self?.look() }
    try naming("watch", container.directory) { () throws(Errno) in
      try Thread("board") { [self] in
        while true { refresh() }
      }.detach()
    }
  }

  private func look() { state.signal { $0.isDue = true } }

  private func note(event text: String) {
    state.signal { state in
      state.add(ShownText.of(text, most: 300))
      state.isDue = true
    }
  }

  private func note(_ snapshot: Snapshot<PropertyListValue>) {
    let metadata = snapshot.metadata
    let name = ShownText.of(snapshot.channel)
    let row: PropertyListValue = [
      "name": .string(name), "version": .integer(Int64(metadata.version)),
      "value": .string(snapshot.value.map { ShownText.of($0) } ?? ""),
      "cleared": .boolean(snapshot.value == nil), "writer": .string(ShownText.of(metadata.writer)),
      "at": .string(DateText.format(metadata.writtenAt) ?? ""),
      "file": .string("channels/\(Self.file(snapshot.channel))/value.plist"),
    ]
    let change = snapshot.value == nil ? "cleared" : "changed"
    state.signal { state in
      state.channels[snapshot.channel] = row
      let writer = ShownText.of(metadata.writer)
      state.isDue = true
      guard metadata.writtenAt > started else { return }
      state.add("channel '\(name)' \(change) by '\(writer)', version \(metadata.version)")
    }
  }

  private static func file(_ name: String) -> String { (try? EscapedName.escape(name)) ?? "?" }

  // MARK: Looking

  /// Waits until a page looks and something may have changed, and publishes the document.
  private func refresh() {
    let end: Instant? = server.isWatched ? .now + .milliseconds(500) : nil
    let _: Void? = state.wait(until: end) { state in
      guard state.isDue else { return nil }
      state.isDue = false
      return ()
    }
    // Changes in quick succession are shown together.
    Thread.pause(.milliseconds(40))
    let (rows, refusals) = read(state.withLock { $0.rows })
    // A channel that is noted after the list of names began may be missing in the list.
    let known = state.withLock { $0.channels }
    // Names that cannot be listed remove no row: the watcher reports a channel again only after a
    // change.
    var (names, refusal): (Set<String>?, String?) = (nil, nil)
    do { names = Set(try container.channels()) } catch { refusal = "\(error)" }
    let document: String? = state.withLock { state in
      if let names {
        state.channels = state.channels.filter {
          names.contains($0.key) || known[$0.key] != $0.value
        }
      }
      // Events are about all rows: a row after the last one that is shown has not gone.
      state.compare(rows)
      state.rows = rows
      var document = Dictionary(uniqueKeysWithValues: rows.map { ($0, list($1, refusals[$0])) })
      document["channels"] = list(state.channels.sorted { $0.key < $1.key }.map(\.value), refusal)
      document["events"] = .array(state.events)
      document["container"] = .string(ShownText.of(container.directory, most: 300))
      document["allowsChanges"] = .boolean(allowsChanges)
      let text = (try? JSONPropertyList.encode(.dictionary(document), limits: .output)) ?? "{}"
      guard text != state.last else { return nil }
      state.last = text
      return text
    }
    if let document { server.publish(document) }
  }

  /// - Parameter refusal: why the list cannot be read; the rows are older then.
  private func list(_ rows: [PropertyListValue], _ refusal: String?) -> PropertyListValue {
    [
      "rows": .array(Array(rows.prefix(Self.most))),
      "more": .integer(Int64(max(0, rows.count - Self.most))),
      "refusal": .string(ShownText.of(refusal ?? "", most: 300)),
    ]
  }

  /// Reads all lists except that of the channels; a list that cannot be read keeps its rows.
  private func read(_ before: Lists) -> (rows: Lists, refusals: [String: String]) {
    var (rows, refusals): (Lists, [String: String]) = (before, [:])
    rows["locks"] = locks()
    for (name, read) in [("members", members), ("queues", queues), ("machines", machines)] {
      do { rows[name] = try read() } catch { refusals[name] = "\(error)" }
    }
    return (rows, refusals)
  }

  private func members() throws -> [PropertyListValue] {
    try container.members().map { member in
      let info = member.info.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
      return [
        "name": .string(ShownText.of(member.name)),
        "state": .string(
          member.isRunning ? member.isStopped == true ? "stopped" : "running" : "not running"),
        "program": .string(ShownText.of(member.program)),
        "process": .integer(Int64(member.processID)),
        "info": .string(ShownText.of(info.joined(separator: ", "))),
        "file": .string("members/\(Self.file(member.name))/"),
      ]
    }
  }

  /// The bridge of the container, and its flows; empty without a bridge.
  private func machines() throws -> [PropertyListValue] {
    guard try container.storage.hasBridge, let status = try BridgeStatus.read(container) else {
      return []
    }
    return status.rows.map { row in
      .dictionary(row.mapValues { $0.stringValue.map { .string(ShownText.of($0)) } ?? $0 })
    }
  }

  private func queues() throws -> [PropertyListValue] {
    let queues = try container.queues().map { ("queue", "queues", $0) }
    let inboxes = try container.members().map { ("inbox", "members", $0.name) }
    return (queues + inboxes).map { kind, folder, name in
      let path = "\(folder)/\(Self.file(name))"
      return [
        "name": .string(ShownText.of(name)), "kind": .string(kind),
        "waiting": number { try names("\(path)/inbox").count + names("\(path)/later").count },
        "claimed": number {
          try names("\(path)/workers").reduce(names("\(path)/claimed").count) {
            try $0 + names("\(path)/workers/\($1)/claimed").count
          }
        },
        // A dead letter has a second file with its reason.
        "dead": number { try names("\(path)/dead").count { !$0.ends(with: ",reason") } },
        "file": .string("\(path)/inbox/"),
      ]
    }
  }

  /// Returns a question mark for files that cannot be listed.
  private func number(_ count: () throws -> Int) -> PropertyListValue {
    do { return .integer(Int64(try count())) } catch { return .string("?") }
  }

  private func names(_ path: String) throws -> [String] {
    let found = try ignoring(
      .noSuchFile,
      Descriptor.open(path: "\(container.storage.path)/\(path)", .readOnlyDirectory).names())
    return (found ?? []).filter { !$0.begins(with: ".") && !$0.ends(with: ",cancel") }
  }

  private func locks() -> [PropertyListValue] {
    let prefix = Container.Folder.lockPrefix
    return container.storage.locksSeen().compactMap { lock in
      let isChannel = lock.folder == .channels
      guard isChannel || lock.name.begins(with: prefix) else { return nil }
      let name = isChannel ? lock.name : String(lock.name.dropFirst(prefix.count))
      return [
        "name": .string((isChannel ? "channel " : "") + ShownText.of(name)),
        "holder": .string(ShownText.of("\(lock.holder)")), "file": .string(lock.path),
      ]
    }
  }
}

extension Board.State {
  /// Adds an event; the newest come first.
  fileprivate mutating func add(_ text: String) {
    let time = DateText.format(Date()) ?? ""
    events.insert(["at": .string(time), "text": .string(text)], at: 0)
    events.removeLast(max(0, events.count - 60))
  }

  /// Adds an event for each row that has come, gone or changed.
  fileprivate mutating func compare(_ lists: Board.Lists) {
    var now: [String: String] = [:]
    for (list, keys) in [
      ("members", ["state"]), ("queues", ["waiting", "claimed", "dead"]), ("locks", ["holder"]),
    ] {
      for row in lists[list] ?? [] {
        let name = "\(row["kind"]?.stringValue ?? String(list.dropLast())) \(row.text("name"))"
        now[name] = keys.map {
          $0 == "state" || $0 == "holder" ? row.text($0) : "\(row.text($0)) \($0)"
        }
        .joined(separator: ", ")
      }
    }
    defer { before = now }
    guard !before.isEmpty || !last.isEmpty else { return }
    for name in Set(now.keys).union(before.keys).sorted() where now[name] != before[name] {
      add("\(name): \(now[name] ?? (name.begins(with: "lock ") ? "free" : "removed"))")
    }
  }
}

extension PropertyListValue {
  fileprivate func text(_ key: String) -> String {
    self[key].map { $0.stringValue ?? $0.intValue.map { "\($0)" } ?? "" } ?? ""
  }
}
