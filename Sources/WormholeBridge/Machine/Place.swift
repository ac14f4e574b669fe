package import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// Which machine a container is, in `bridge/place.plist`, and the chain of its bridges' starts.
///
/// Each start has a number, the generation, and a random nonce. The servers have a record with the
/// latest nonce. A container whose list does not contain the recorded nonce is a copy, or was
/// restored from a backup: another one has continued under its identity.
package struct Place: Equatable, Sendable {
  /// 16 random hexadecimal digits, made at the first start of a bridge.
  package let machine: String
  /// The containers of a group on different machines share members.
  package let group: String
  package var generation: Int
  /// The nonces of the latest starts, the newest one last.
  package var nonces: [String]

  static let fileName = "place.plist"
  private static let mostNonces = 64

  private enum Key {
    static let (machine, group, generation) = ("machine", "group", "generation")
    static let nonces = "nonces"
  }

  private init(machine: String, group: String) {
    (self.machine, self.group, generation, nonces) = (machine, group, 0, [])
  }

  private init?(_ list: PropertyListValue) {
    guard let machine = list[Key.machine]?.stringValue, Incarnation(rawValue: machine) != nil,
      let group = list[Key.group]?.stringValue, let nonces = list[Key.nonces]?.arrayValue,
      let generation = list[Key.generation]?.intValue, generation >= 0
    else { return nil }
    (self.machine, self.group, self.generation) = (machine, group, generation)
    self.nonces = nonces.compactMap(\.stringValue)
  }

  private var propertyList: PropertyListValue {
    [
      Key.machine: .string(machine), Key.group: .string(group),
      Key.generation: .integer(Int64(generation)),
      Key.nonces: .array(nonces.map { .string($0) }),
    ]
  }

  /// Reads the place; nil if no bridge has ever served the container.
  package static func read(_ folder: BridgeFolder) throws(WormholeError) -> Place? {
    guard let list = try folder.read(fileName) else { return nil }
    guard let place = Place(list) else { throw folder.damaged(fileName) }
    return place
  }

  /// Reads the place, or makes a new one.
  package static func open(
    _ folder: BridgeFolder, group: String, _ environment: Environment
  ) throws(WormholeError) -> Place {
    if let place = try read(folder) {
      guard place.group == group else {
        throw WormholeError(
          .conflict, "serve group", group,
          because: "the container belongs to group '\(place.group)'",
          hint: "name that group, or serve this group from another container")
      }
      return place
    }
    let place = Place(machine: environment.randomName(), group: group)
    try folder.replace(fileName, by: place.propertyList)
    return place
  }

  /// Puts a new machine in the place of the present machine.
  static func replace(
    _ place: Place, _ folder: BridgeFolder, _ environment: Environment
  ) throws(WormholeError) {
    let next = Place(machine: environment.randomName(), group: place.group)
    try folder.replace(fileName, by: next.propertyList)
  }

  /// Begins a generation that is later than the recorded one, with the nonce of this process.
  ///
  /// The recorded nonce stays in the list, however often a start is repeated.
  mutating func begin(
    after record: MachineRecord?, nonce: String, _ folder: BridgeFolder
  ) throws(WormholeError) {
    generation = max(generation, record?.generation ?? 0).addingClamped(1)
    nonces.removeAll { $0 == nonce }
    nonces.append(nonce)
    while nonces.count > Self.mostNonces {
      nonces.remove(at: nonces[0] == record?.nonce ? 1 : 0)
    }
    try folder.replace(Self.fileName, by: propertyList)
  }
}

/// What the servers have on a machine: the latest start of its bridge.
struct MachineRecord: Equatable {
  /// What the bridges of other machines do with messages to a machine that was given up.
  enum Fate: String { case putBack, deadLetter }

  let generation: Int
  let nonce: String
  /// Not nil if the machine was given up: its bridge may not continue.
  let fate: Fate?

  private enum Key { static let (generation, nonce, fate) = ("generation", "nonce", "evicted") }

  init(generation: Int, nonce: String, fate: Fate? = nil) {
    (self.generation, self.nonce, self.fate) = (generation, nonce, fate)
  }

  init?(_ list: PropertyListValue) {
    guard let generation = list[Key.generation]?.intValue, generation >= 0,
      let nonce = list[Key.nonce]?.stringValue
    else { return nil }
    let fate = list[Key.fate]?.stringValue.map { Fate(rawValue: $0) ?? .putBack }
    self.init(generation: generation, nonce: nonce, fate: fate)
  }

  /// Nil for bytes in another form.
  init?(_ bytes: [UInt8]) {
    guard let json = try? JSONPropertyList.decode(bytes) else { return nil }
    self.init(json)
  }

  var bytes: [UInt8] {
    var list: [String: PropertyListValue] = [
      Key.generation: .integer(Int64(generation)), Key.nonce: .string(nonce),
    ]
    if let fate { list[Key.fate] = .string(fate.rawValue) }
    return RecordJSON.bytes(.dictionary(list))
  }
}

/// The form of records on the servers.
enum RecordJSON {
  static func bytes(_ value: PropertyListValue) -> [UInt8] {
    Array(((try? JSONPropertyList.encode(value)) ?? "").utf8)
  }
}
