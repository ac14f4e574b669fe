package import FoundationEssentials
package import WormholePropertyLists
internal import WormholeSyscalls

/// The other machine that is the home of a channel: on this machine the value is a copy.
///
/// Only the home decides on changes. The copy's own file names the home, so no change of a channel
/// with a value needs a further file. `home.plist` beside the value does so for a channel without a
/// value, and states until when the copy was known to be the latest.
package struct ChannelHome: Hashable, Sendable {
  /// The machine; nil if this cannot be read.
  package var machine: String?
  /// When the home last stated that the copy is its latest value, by the clock of this machine.
  package var since: Date?
  /// The version of which the home has stated this.
  package var version: Int?
  /// The address of the guest that takes changes for the home.
  package var carrier: String?

  package init(
    machine: String? = nil, since: Date? = nil, version: Int? = nil, carrier: String? = nil
  ) {
    (self.machine, self.since, self.version, self.carrier) = (machine, since, version, carrier)
  }

  static let fileName = "home.plist"
  /// The largest file that is read.
  private static let largestFile = 4096

  package var list: PropertyListValue {
    var entries: [String: PropertyListValue] = [:]
    entries["machine"] = machine.map { .string($0) }
    entries["since"] = since.map { .date($0) }
    entries["version"] = version.map { .integer(Int64($0)) }
    entries["carrier"] = carrier.map { .string($0) }
    return .dictionary(entries)
  }

  fileprivate init(_ file: FoundFile) {
    guard case .sound(let bytes, _) = file, let list = try? BinaryPropertyList.decode(bytes) else {
      self.init()
      return
    }
    self.init(list)
  }

  /// Reads what has the right type; the channel has another home in any case.
  package init(_ list: PropertyListValue) {
    machine = list["machine"]?.stringValue?.harmless
    since = list["since"]?.dateValue
    version = list["version"]?.intValue
    carrier = list["carrier"]?.stringValue
  }

  /// The reason for refusing what only the home can do.
  package var reason: String {
    machine.map { "its home is another machine, '\($0.harmless)'" }
      ?? "its home is another machine, which '\(Self.fileName)' does not name"
  }

  /// The error of a change without a process that carries it to the home.
  package func refusal(_ operation: String, _ name: String) -> WormholeError {
    WormholeError(
      .unreachable, operation, name,
      because: "\(reason), and no process carries changes there",
      hint: "start the bridge between the machines, or make the change on that machine")
  }

  static func read(
    in directory: borrowing Descriptor, _ container: Container
  ) throws(Errno) -> ChannelHome? {
    let file = try container.reader.readUsable(fileName, in: directory, atMost: largestFile)
    if case .missing? = file { return nil }
    return file.map { ChannelHome($0) } ?? ChannelHome()
  }
}

extension Slot {
  /// The other machine that is the channel's home, from the file beside the value; nil for a
  /// channel of this machine.
  ///
  /// The file decides by its existence alone.
  package func home() throws(WormholeError) -> ChannelHome? {
    let operation = "read the home of channel"
    guard folder == .channels else { return nil }
    return try inPresentDirectory(operation) { directory throws(Errno) in
      try ChannelHome.read(in: directory.descriptor, container)
    }
  }

  /// Writes the file; the channel is made if need be.
  ///
  /// - Parameter durability: `.power` for a file that was missing. A power cut may take the content
  ///   of a file that is replaced, but not the file.
  package func setHome(
    _ home: ChannelHome, durability: Durability = .power
  ) throws(WormholeError) {
    let operation = "store the home of channel"
    do throws(Errno) {
      let directory = try openDirectory(making: true)
      guard let bytes = try? BinaryEncoder().encode(home.list) else { throw .invalidArgument }
      let isDurable = durability == .power
      try container.replace(
        ChannelHome.fileName, in: directory.descriptor, by: bytes, sync: isDurable)
      if isDurable, let failure = directory.trySyncNames() { throw failure }
    } catch {
      throw WormholeError(error, operation, self)
    }
  }

  /// Removes the file: from then on, this machine is the home of the channel.
  ///
  /// A file that came back after a power cut would make a channel without a value a copy again.
  package func removeHome() throws(WormholeError) {
    _ = try inPresentDirectory("store the home of channel") { directory throws(Errno) -> Void? in
      let removed: Void? = try ignoring(
        .noSuchFile, directory.descriptor.unlink(ChannelHome.fileName))
      // Also if the file is missing: an earlier call may have removed it, and failed here.
      if let failure = directory.trySyncNames() { throw failure }
      return removed
    }
  }

  /// Calls the body with the directory that has the slot's name; nil if there is none.
  ///
  /// A directory that another process has removed is empty. If the body finds nothing in an open
  /// directory that was removed, the body is called again with the next directory of the name.
  private func inPresentDirectory<Found>(
    _ operation: String, _ body: (SlotDirectory) throws(Errno) -> Found?
  ) throws(WormholeError) -> Found? {
    while let directory = try openDirectory(operation) {
      do throws(Errno) {
        if let found = try body(directory) { return found }
      } catch {
        throw WormholeError(error, operation, self)
      }
      guard directory.isStale else { return nil }
      forgetDirectory()
    }
    return nil
  }
}
