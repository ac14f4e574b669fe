internal import Syscalls

extension Inspection {
  mutating func inspectDeadGuests() throws(Errno) {
    for name in try container.guestNames().sorted() {
      do throws(Errno) {
        guard try !container.openMember(name, name, .guests).isPresent() else { continue }
        add(
          Finding(
            .problem, "\(Container.Folder.guests.rawValue)/\(name)",
            "a process that has ended was a guest, and left it",
            advice: "the next program that opens the container removes it", isRepairable: true))
      } catch {
        // It has gone meanwhile, or is no directory, which was told.
        let told: Set<Errno> = [.noSuchFile, .notADirectory, .tooManyLinks]
        guard told.contains(error) else { throw error }
      }
    }
  }
}
