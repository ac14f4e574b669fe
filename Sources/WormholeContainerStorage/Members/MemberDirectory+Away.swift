package import WormholeSyscalls

/// A queue whose home is another machine.
///
/// The queue's own directory has the messages that go to the home, as the directory of a member of
/// another machine. The messages that the home has lent to this machine's workers are in the
/// queue's `away/`, which has the parts of a queue. Each message there ends in its `receipts/`,
/// whatever its sender has asked for: the carrier brings the end to the home.
extension MemberDirectory {
  /// The directory in which this machine's workers work on a queue of another machine.
  package func away() throws(Errno) -> MemberDirectory {
    _ = try part(.away)
    let name = Part.away.rawValue
    let home = try container.options.sharing.openExisting(name, in: self.home.descriptor)
    return MemberDirectory(worker: name, of: self, home: home, in: self.home, steps: [name])
  }

  /// Whether this is such a directory.
  package var isAway: Bool { folder == .queues && steps.count == 3 }
}
