internal import WormholeSyscalls

/// The directory of a server's data.
package struct ServerData: Sendable {
  package let path: String
  package init(path: String) { self.path = path }

  /// The lines of a server's configuration about JetStream.
  func configuration(_ domain: String?, syncAlways: Bool) -> String {
    """
    jetstream {
      store_dir: "\(path)"
      max_memory_store: 256MB
      max_file_store: 4GB
      \(domain.map { "domain: \($0)" } ?? "")
      \(syncAlways ? "sync_interval: always" : "")
    }
    """
  }

  /// Removes all data; without any, nothing happens.
  package func remove() throws {
    do {
      try Descriptor.open(path: path, [.readOnly, .directory]).removeContents()
    } catch Errno.noSuchFile {
    }
  }

  /// Copies the data to a directory that does not exist yet.
  package func copy(to other: String) throws {
    let outcome = try run("cp", ["-a", "--", path, other])
    guard outcome.status == .exited(0) else { throw ServerFailure(description: outcome.errors) }
  }

  /// Replaces the data by a copy.
  package func restore(from other: String) throws {
    try remove()
    let outcome = try run("cp", ["-a", "--", other + "/.", path])
    guard outcome.status == .exited(0) else { throw ServerFailure(description: outcome.errors) }
  }
}
