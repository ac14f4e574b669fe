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

  /// Changes one bit in the middle of each file with messages of a stream, as a bad disk does;
  /// returns the number of files.
  package func changeMessages(ofStream stream: String) throws -> Int {
    let found = try run("find", [path, "-path", "*/streams/\(stream)/msgs/*.blk", "-size", "+0"])
    let files = found.output.split(separator: "\n").map(String.init)
    for file in files {
      let block = try Descriptor.open(path: file, [.readWrite])
      let middle = try block.status().size / 2
      var byte: [UInt8] = [0]
      _ = try byte.withUnsafeMutableBytes { try block.readFully(into: $0, at: middle) }
      byte[0] ^= 1
      try block.writeFully(byte.span.bytes, at: middle)
    }
    return files.count
  }
}
