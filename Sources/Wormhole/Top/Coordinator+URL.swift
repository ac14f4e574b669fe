public import Dispatch
public import FoundationEssentials
public import WormholeContainerStorage

/// Accesses to files by their URLs; each call is as the overload with a path.
extension Coordinator {
  /// Reads a file while no process writes it.
  public func read<Result>(
    _ url: URL, within timeout: Duration? = nil, takeOverAfter: Duration? = nil,
    _ body: (_ url: URL) throws -> Result
  ) throws -> Result {
    try read(url.filePath("read"), within: timeout, takeOverAfter: takeOverAfter) { path in
      try body(URL(filePath: path))
    }
  }

  /// Changes a file in place, removes it or creates it, while no other process accesses it.
  public func write<Result>(
    _ url: URL, within timeout: Duration? = nil, takeOverAfter: Duration? = nil,
    _ body: (_ url: URL) throws -> Result
  ) throws -> Result {
    try write(url.filePath("write"), within: timeout, takeOverAfter: takeOverAfter) { path in
      try body(URL(filePath: path))
    }
  }

  /// Makes a new file, which takes the place of the old file in one step.
  public func replace<Result>(
    _ url: URL, within timeout: Duration? = nil, takeOverAfter: Duration? = nil,
    _ body: (_ new: URL, _ old: URL) throws -> Result
  ) throws -> Result {
    let path = try url.filePath("replace")
    return try replace(path, within: timeout, takeOverAfter: takeOverAfter) { new, old in
      try body(URL(filePath: new), URL(filePath: old))
    }
  }

  /// Registers as presenter of a file.
  public func present(
    _ url: URL, on queue: DispatchQueue? = nil, as presenter: Presenter
  ) throws(WormholeError) -> Subscription {
    try present(url.filePath("present"), on: queue, as: presenter)
  }
}

extension Coordinator.Intent {
  /// The file is read, and further accesses may read it at the same time.
  public static func reading(_ url: URL) throws(WormholeError) -> Self {
    .reading(try url.filePath("read"))
  }

  /// The file is changed in place, removed or created.
  public static func writing(_ url: URL) throws(WormholeError) -> Self {
    .writing(try url.filePath("write"))
  }

  /// The file is removed.
  public static func deleting(_ url: URL) throws(WormholeError) -> Self {
    .deleting(try url.filePath("delete"))
  }

  /// A new file is made, and then takes the place of the old file in one step.
  public static func replacing(_ url: URL) throws(WormholeError) -> Self {
    .replacing(try url.filePath("replace"))
  }
}

extension Coordinator.Access {
  /// The URLs to use, in the order of the intents; for a replaced file, the URL at which to make
  /// the new file.
  public var urls: [URL] { paths.map { URL(filePath: $0) } }

  /// The URLs of the intents, without links on the way to them.
  public var originalURLs: [URL] { originals.map { URL(filePath: $0) } }
}
