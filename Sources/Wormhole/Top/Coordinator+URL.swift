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

  /// Registers as presenter of a file.
  public func present(
    _ url: URL, on queue: DispatchQueue? = nil, as presenter: Presenter
  ) throws(WormholeError) -> Subscription {
    try present(url.filePath("present"), on: queue, as: presenter)
  }
}
