package import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// A second name for a channel's value: a symbolic link outside the container, which exists as
/// long as the channel has a value.
///
/// The link is made and removed under the channel's lock, before the value is changed. So if
/// changes race, the last change settles both. A process that is suspended in the middle and
/// resumes later finds its lock overtaken, and repeats its change, including the link. A process
/// that is killed in the middle leaves a link to the old content, or no link for a value that was
/// about to be cleared; the next change repairs the link.
package struct Alias: Sendable {
  /// The directory that contains the container.
  private let parent: String
  /// The names of the directories below `parent`, and last the name of the link.
  private let path: [String]
  private let target: String
  /// The path of the link.
  package let location: String
  /// The content of the link, compared at each change.
  private let targetBytes: [UInt8]

  /// - Parameters:
  ///   - path: the names of directories below the container's parent, which are made if missing,
  ///     and then the link's own name.
  ///   - channel: the channel whose value is the target.
  package init(
    _ path: [String], channel: String, in container: SharedContainer
  ) throws(WormholeError) {
    let place = UserPath(container.directory)
    parent = place.directory
    self.path = path
    let up = [String](repeating: "..", count: path.count - 1)
    let slot = ["channels", try Container.escape(channel), Slot.valueName]
    target = (up + [place.name] + slot).joined(separator: "/")
    location = ([parent] + path).joined(separator: "/")
    targetBytes = Array(target.utf8)
  }

  /// Makes or removes the link.
  fileprivate func set(_ isThere: Bool) throws(WormholeError) {
    try naming(isThere ? "create link" : "remove link", location) { () throws(Errno) in
      if isThere { try make() } else { try remove() }
    }
  }

  fileprivate var isThere: Bool {
    (try? Descriptor.readSymbolicLink(path: location)) == targetBytes
  }

  private func make() throws(Errno) {
    // Nearly always, the link exists already, and one system call finds that.
    if isThere { return }
    let folder = try folder(making: true)
    let link = path[path.count - 1]
    if try ignoring(.fileExists, folder.makeSymbolicLink(link, to: target)) != nil { return }
    // Another program has made the entry if it is not a link, or is a link to another target.
    let present: [UInt8]
    do throws(Errno) {
      present = try folder.readSymbolicLink(link)
    } catch {
      throw error == .invalidArgument ? .fileExists : error
    }
    guard present == targetBytes else { throw .fileExists }
  }

  private func remove() throws(Errno) {
    // The entry may not exist, or be no link; or a file has the name of a directory above.
    try ignoring([.noSuchFile, .invalidArgument, .notADirectory]) { () throws(Errno) in
      let folder = try folder(making: false)
      let link = path[path.count - 1]
      guard try folder.readSymbolicLink(link) == targetBytes else { return }
      try folder.unlink(link)
    }
  }

  private func folder(making: Bool) throws(Errno) -> Descriptor {
    var folder = try Descriptor.open(path: parent, .readOnlyDirectory)
    for name in path.dropLast() {
      if making {
        try ignoring(.fileExists, folder.makeDirectory(name, mode: 0o700))
      }
      folder = try folder.open(name, .readOnlyDirectory)
    }
    return folder
  }
}

extension Channel {
  /// Puts a value that has a second name.
  @discardableResult
  package func put(_ value: Value, alias: Alias) throws(WormholeError) -> Int {
    try change("put value into", hasValue: true, alias) { (writer, content) throws(WormholeError) in
      let count = try writer.count(content)
      return (count, try writer.seal(value, count, "put value into channel"))
    }
  }

  /// Clears the value, and removes its second name.
  @discardableResult
  package func clear(alias: Alias) throws(WormholeError) -> Int {
    // Check first, so that clearing an unused name makes no channel of it. An existing link may
    // belong to a process that is about to put the first value.
    if !alias.isThere, try isUnwritten() { return 0 }
    return try change("clear", hasValue: false, alias) { (writer, content) throws(WormholeError) in
      let count = try writer.count(content)
      return (count, try writer.seal(Value?.none, count, "clear channel"))
    }
  }

  private func change(
    _ operation: String, hasValue: Bool, _ alias: Alias,
    _ file: (SlotWriter, Slot.Content) throws(WormholeError) -> (
      count: VersionCount, bytes: [UInt8]
    )
  ) throws(WormholeError) -> Int {
    let writer = try writer()
    var isTouched = false
    do throws(WormholeError) {
      return try WormholeError.writing("\(operation) channel", name) {
        var result = 0
        try writer.slot.change(
          operation, durability: container.options.durability, patience: writer.patience
        ) { content in
          let (count, bytes) = try file(writer, content)
          result = count.next
          isTouched = true
          try alias.set(hasValue)
          return .put(bytes, note: count.note)
        }
        return result
      }
    } catch {
      if isTouched { settle(alias, writer) }
      throw error
    }
  }

  /// Makes or removes the link to match the value, after a failed change.
  ///
  /// The time of the change may be over, or its caller may have cancelled it.
  private func settle(_ alias: Alias, _ writer: SlotWriter) {
    let reader = reader()
    do {
      let patience = Patience(within: container.options.timeout)
      try writer.slot.change("repair the link of", patience: patience) { content in
        let isThere = try reader.metadata(of: content).map { !$0.isCleared } ?? false
        try alias.set(isThere)
        return .none
      }
    } catch {
      container.log(
        .warning,
        "the link '\(alias.location)' may not match the value of channel '\(name)': \(error)",
        about: writer.slot.logSubject, because: error)
    }
  }
}
