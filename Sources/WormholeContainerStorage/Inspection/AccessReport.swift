internal import WormholeSyscalls

/// An access to files that runs or waits.
package struct AccessReport: Sendable {
  /// The name of the access, different from the names of all others.
  package let name: String
  /// `waiting`, `running` or `overtaken`.
  package let state: String
  /// The process; nil if its mark cannot be read.
  package let holder: LockHolder?
  /// Whether the process lives; true if the check fails.
  package let isAlive: Bool
  /// The files, each with whether the access writes to it.
  package let parts: [(path: String, writes: Bool)]
  /// How long ago the access arrived.
  package let age: Duration

  /// The files as in `write '/a' and read '/b'`.
  package var description: String {
    parts.map { "\($0.writes ? "write" : "read") '\($0.path)'" }.joined(separator: " and ")
  }
}

extension Container {
  /// Returns the accesses to files that run or wait, in the order of their arrival.
  ///
  /// - Parameter wanted: the names to report; nil for all.
  package func accesses(_ wanted: Set<String>? = nil) throws(WormholeError) -> [AccessReport] {
    let room = try AccessDirectory(self)
    do throws(Errno) {
      guard let home = try room.existingDirectory() else { return [] }
      var found: [AccessName: AccessReport] = [:]
      // A process may have thousands of accesses, and is checked once.
      var processes: [UInt64: (holder: LockHolder?, isAlive: Bool)] = [:]
      for place in AccessPlace.allCases {
        for name in try room.names(in: place, of: home) {
          guard wanted?.contains(name.text) ?? true,
            let entry = try room.entry(of: name, in: place, of: home)
          else { continue }
          let process =
            processes[name.processNumber] ?? room.check(process: name.process, in: home)
          processes[name.processNumber] = process
          let since = Int64(clamping: name.stamp)
          // An access that moves on between two listings has the later state.
          found[name] = AccessReport(
            name: name.text, state: place.name, holder: process.holder, isAlive: process.isAlive,
            parts: entry.claim.parts.map { ($0.path.text, $0.writes) },
            age: .nanoseconds(max(0, options.environment.sinceBoot() - since)))
        }
      }
      return found.sorted { $0.key.stamp < $1.key.stamp }.map(\.value)
    } catch {
      guard ![.noSuchFile, .notADirectory].contains(error) else { return [] }
      throw WormholeError(
        error, "list", path + "/system/\(AccessDirectory.slotName)", accessesIn: self)
    }
  }
}

extension AccessDirectory {
  /// Returns the holder of a process's accesses, and whether the process lives; true if the check
  /// fails.
  fileprivate func check(
    process: String, in home: AccessHome
  ) -> (holder: LockHolder?, isAlive: Bool) {
    (holder(of: process, in: home), (try? isAlive(process, in: home)) ?? true)
  }
}
