import TestSupport
import Wormhole
import WormholeBridge
import WormholeContainerStorage
import WormholeSyscalls

/// Two containers that stand for two machines, and the flows between them, without servers.
final class TwoMachines {
  /// One machine, as its bridge knows it.
  final class Side {
    let machine: String
    let container: SharedContainer
    let residents: Residents
    let out: OutFlow
    let incoming: InFlow

    init(
      _ machine: String, _ other: String, _ path: String, _ options: Options = Options()
    ) throws {
      self.machine = machine
      container = try SharedContainer(directory: path, options: options)
      residents = try Residents(container, Carrier(container))
      out = try OutFlow(to: other, residents)
      incoming = try InFlow(from: other, residents, out.refusals)
    }

    /// The bundles that the servers get, and acknowledge, if the bridge looks now.
    func published() throws -> [FlowBundle] {
      let proxies = residents.all(for: out.machine).sorted { $0.name < $1.name }
      _ = try out.collect(from: proxies)
      var bundles: [FlowBundle] = []
      while let bundle = try out.bundle(generation: 1, size: 400 << 10, largest: 900 << 10) {
        out.note(published: bundle)
        bundles.append(bundle)
      }
      return bundles
    }

    /// Receives bundles, as the bridge does when the servers deliver them.
    func receive(_ bundles: [FlowBundle]) throws -> [InFlow.BundleStatus] {
      for bundle in bundles { try incoming.begin(bundle.flow) }
      return try incoming.receive(
        bundles.compactMap { bundle in
          bundle.encoded().flatMap { FlowBundle($0) }.map { ($0, 0) }
        })
    }
  }

  static let (hereName, thereName) = ("000000000000000a", "000000000000000b")

  let folder: TemporaryDirectory
  let (here, there): (SharedContainer, SharedContainer)
  let (sender, receiver): (Member, Monitor<Member?>)
  private var sides: (here: Side, there: Side)?
  /// What the wire does with a bundle: how often it arrives.
  var wire: (FlowBundle) -> Int = { _ in 1 }
  var pumps = 0
  /// The options of the other machine's bridge.
  var thereOptions = Options()

  init() throws {
    folder = try TemporaryDirectory()
    here = try SharedContainer(directory: folder.path + "/here")
    there = try SharedContainer(directory: folder.path + "/there")
    sender = try here.join(as: "al")
    receiver = Monitor(nil)
    _ = try opened().here.residents.proxy(of: .member("bob"), on: Self.thereName)
  }

  /// The bridges of both machines; started again after ``kill()``.
  func opened() throws -> (here: Side, there: Side) {
    if let sides { return sides }
    let opened = (
      here: try Side(Self.hereName, Self.thereName, folder.path + "/here"),
      there: try Side(Self.thereName, Self.hereName, folder.path + "/there", thereOptions)
    )
    sides = opened
    return opened
  }

  func kill() { sides = nil }

  /// Carries what waits in both directions, once.
  func pump() throws {
    pumps += 1
    let sides = try opened()
    try carry(from: sides.here, to: sides.there)
    try carry(from: sides.there, to: sides.here)
  }

  private func carry(from: Side, to: Side) throws {
    for bundle in try from.published() {
      for _ in 0..<wire(bundle) { _ = try to.receive([bundle]) }
    }
    if let position = to.incoming.position { try from.out.confirm(position) }
    if !from.out.isConfirmed { from.out.goBack(to: to.incoming.position?.number ?? 0) }
    try from.out.finish()
  }

  /// What the bridge of the sender publishes now.
  func published() throws -> [FlowBundle] { try opened().here.published() }

  /// Lets bundles arrive.
  @discardableResult
  func receive(_ bundles: [FlowBundle]) throws -> [InFlow.BundleStatus] {
    try opened().there.receive(bundles)
  }

  /// A copy of the sending machine, with a bridge of its own.
  func copy() throws -> Side {
    let path = folder.path + "/copy"
    let outcome = try run("cp", ["-a", folder.path + "/here", path])
    guard outcome.status == .exited(0) else { throw NoCopy(description: outcome.errors) }
    return try Side(Self.hereName, Self.thereName, path)
  }

  struct NoCopy: Error, CustomStringConvertible { let description: String }

  /// Carries until nothing is left to carry, and the number of messages was received.
  func settle() throws {
    for _ in 0..<80 {
      try pump()
      let outs = [try opened().here.out, try opened().there.out]
      if outs.allSatisfy({ $0.isConfirmed && $0.interrupted.isEmpty }) { return }
    }
    throw StillOnTheWay()
  }

  struct StillOnTheWay: Error {}

  @discardableResult
  func send(_ number: Int, _ adjust: (inout SendOptions) -> Void = { _ in }) throws -> Sent {
    var options = SendOptions()
    options.durability = .process
    adjust(&options)
    return try sender.peer("bob").send(number, options)
  }

  /// Receives so many messages on the other machine, and acknowledges them.
  func receive(_ count: Int) throws -> [Int] {
    let bob = try there.join(as: "bob")
    defer { bob.leave() }
    let heard = Heard<Int>()
    let receiving = try bob.receive(Int.self) { value, _ in heard.add(value) }
    try heard.wait("\(count) messages", within: .seconds(60)) { $0.count >= count }
    receiving.stop()
    return heard.all
  }

  /// The names in a directory; empty if there is no such directory yet.
  func names(_ path: String) throws -> [String] {
    do {
      return try Descriptor.open(path: folder.path + "/" + path, [.readOnly, .directory])
        .names().sorted()
    } catch Errno.noSuchFile {
      return []
    }
  }
}
