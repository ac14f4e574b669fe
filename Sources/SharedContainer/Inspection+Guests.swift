internal import Syscalls

extension Inspection {
  mutating func inspectGuests() throws(Errno) {
    let guests = try container.folder(.guests)
    let ours = Set(try container.guestNames())
    for name in try guests.descriptor.names().sorted() {
      let path = "\(Container.Folder.guests.rawValue)/\(name)"
      guard ours.contains(name) else {
        addForeign(path)
        continue
      }
      do throws(Errno) {
        if try container.openMember(name, name, .guests).isPresent() { continue }
        add(
          Finding(
            .problem, path, "a process that has ended was a guest, and left it",
            advice: "the next program that opens the container removes it", isRepairable: true))
      } catch {
        switch error {
        case .notADirectory, .tooManyLinks: addForeign(path)
        case .noSuchFile: break  // It has gone meanwhile.
        default: throw error
        }
      }
    }
  }
}
