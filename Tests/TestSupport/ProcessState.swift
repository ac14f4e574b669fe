package import WormholeSyscalls

extension Processes {
  /// The state letter that the kernel shows of a process: R, S, T, Z and so on; nil if it is gone.
  package static func state(_ process: Int32) throws -> Character? {
    let bytes: [UInt8]
    do throws(Errno) {
      bytes = try Descriptor.open(path: "/proc/\(process)/stat", [.readOnly]).contents()
    } catch {
      if error == .noSuchFile || error == .noSuchProcess { return nil }
      throw error
    }
    // The name before the state is in parentheses and may contain anything, parentheses included.
    return String(decoding: bytes, as: UTF8.self).split(separator: ")").last?
      .first { $0 != " " }
  }

  /// Whether a process is stopped, as by SIGSTOP.
  package static func isStopped(_ process: Int32) throws -> Bool {
    try state(process) == "T"
  }

  /// The targets of this process's descriptors below a path.
  ///
  /// Only what is below the path is counted, because other tests run at the same time.
  package static func openFiles(below path: String) throws -> [String] {
    let all = try Descriptor.open(path: "/proc/self/fd", [.readOnly, .directory])
    return try all.names().compactMap { number in
      let target = (try? all.readSymbolicLink(number)) ?? []
      let text = String(decoding: target, as: UTF8.self)
      return text.hasPrefix(path) ? text : nil
    }
  }
}
