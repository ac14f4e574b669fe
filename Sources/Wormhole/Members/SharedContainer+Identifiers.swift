internal import WormholeContainerStorage
internal import WormholeSyscalls

extension SharedContainer {
  /// Removes the second names that dead processes have left in a member's directory.
  func sweepIdentifiers(of home: MemberDirectory) {
    do throws(Errno) {
      try home.sweepUnique {
        $0.begins(with: MessageName.uniquePrefix)
      } isOver: { (name) throws(Errno) in
        try home.isOver(name)
      }
    } catch {
      home.log(.notice, "could not sweep the ids of messages to", error)
    }
  }
}
