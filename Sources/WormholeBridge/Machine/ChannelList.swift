internal import Wormhole
internal import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// The channels of this machine, and where some of them move, as an operator has decided.
///
/// The command and the bridge both write the list, which has a file for each channel. A change
/// begins with a reading, so both writers change the list within ``changing(_:within:_:)``.
struct ChannelList {
  struct Entry: Equatable {
    /// Whether this machine is the channel's home.
    var isHome = false
    /// The machine that becomes the home.
    var move: String?
    /// Whether a copy is to become a channel of this machine after the loss of its home.
    var isClaimed = false
  }

  static let folderName = "channels"

  private enum Key {
    static let (isHome, move, isClaimed) = ("home", "move", "claim")
  }

  private let folder: BridgeFolder

  init(of container: Container) throws(WormholeError) {
    folder = try BridgeFolder(
      [Self.folderName], of: container,
      remedy: "restore the file, or remove it and run 'wormhole bridge channel' again")
  }

  /// Reads what was decided of a channel; an entry without content if there is no file.
  func entry(_ channel: String) throws(WormholeError) -> Entry {
    guard let list = try folder.read(BridgeFolder.file(of: channel)) else { return Entry() }
    return Entry(
      isHome: list[Key.isHome]?.boolValue == true, move: list[Key.move]?.stringValue,
      isClaimed: list[Key.isClaimed]?.boolValue == true)
  }

  /// Runs the body while no other process changes the list.
  func changing<Value>(
    _ channel: String, within patience: Duration, _ body: () throws(WormholeError) -> Value
  ) throws(WormholeError) -> Value {
    try folder.changing("change channel", channel, within: patience, body)
  }

  /// Changes what was decided of a channel, and stores the result.
  ///
  /// - Parameter patience: how long to wait for another process's change.
  func change(
    _ channel: String, within patience: Duration, _ body: (inout Entry) -> Void
  ) throws(WormholeError) {
    try changing(channel, within: patience) { () throws(WormholeError) in
      var entry = try self.entry(channel)
      body(&entry)
      try replace(channel, by: entry)
    }
  }

  /// Stores what was decided of a channel; an entry without content removes the file.
  func replace(_ channel: String, by entry: Entry) throws(WormholeError) {
    let file = try BridgeFolder.file(of: channel)
    guard entry != Entry() else {
      try folder.remove(file)
      return try folder.makeDurable()
    }
    var list: [String: PropertyListValue] = [:]
    if entry.isHome { list[Key.isHome] = true }
    if entry.isClaimed { list[Key.isClaimed] = true }
    list[Key.move] = entry.move.map { .string($0) }
    try folder.replace(file, by: .dictionary(list))
  }

  /// Reads all entries; an entry that cannot be read holds up no other.
  func entries() throws(WormholeError) -> (
    entries: [String: Entry], errors: [String: WormholeError]
  ) { try folder.readableEntries(entry) }

  /// When the list was changed last, in nanoseconds.
  ///
  /// Files appear by renames, which change the time of the directory.
  func modified() throws(WormholeError) -> Int64 {
    try naming(
      "inspect", "\(Container.bridgeName)/\(Self.folderName)",
      folder.directory.descriptor.status().modified)
  }
}
