import TestSupport
import Wormhole
import WormholeCTesting
import WormholeContainerStorage
import WormholeSyscalls

/// Jobs that run as another user, whom the modes of files stop.
extension Peer {
  static func become(_ user: UInt32, _ group: UInt32, for job: PeerJob) throws {
    guard forking_become(user, group) == 0 else { Processes.exit(77) }
    try perform(job)
  }

  static func sandbox(_ error: Int32, _ command: [String]) throws {
    guard forking_refuse(error) == 0 else { Processes.exit(77) }
    Processes.exit(try Child.spawn(command[0], Array(command.dropFirst())).wait().code)
  }

  static func diagnose(_ container: String) throws {
    let opened = try meeting(container)
    for finding in try opened.storage.inspect() where finding.severity == .problem {
      try say("\(finding.subject): \(finding.what)")
    }
    opened.close()
  }

  static func insist(
    _ container: String, from: String, to: String, other: String, until file: String
  ) throws {
    let member = try meeting(container).join(as: from)
    let (peer, other) = (member.peer(to), member.peer(other))
    var options = SendOptions()
    options.durability = .process
    var (number, attempt) = (1, 1)
    while (try? Descriptor.open(path: file, [.path])) == nil {
      do throws(WormholeError) {
        try peer.send(number, options)
        try? say("sent \(number)")
        number += 1
      } catch {
        try say("\(error.code): \(error)")
      }
      try other.send(attempt, options)
      attempt += 1
      let _: Void? = Monitor(()).wait(until: .now + .milliseconds(2)) { _ in nil }
    }
    member.leave()
    try say("tried \(attempt - 1)")
  }

  // MARK: Actions of a hostile member of a group

  static func rename(_ directory: String, _ name: String, to new: String) throws {
    let folder = try Descriptor.open(path: directory, [.readOnly, .directory])
    try folder.rename(name, to: folder, new, .notReplacing)
  }

  static func plant(_ directory: String, _ name: String, _ bytes: [UInt8]) throws {
    let folder = try Descriptor.open(path: directory, [.readOnly, .directory])
    let file = try folder.open(name, .writeOnlyNew, mode: 0o600)
    try file.setMode(0o660)
    try file.write(bytes)
  }

  static func plantDirectory(_ directory: String, _ name: String) throws {
    try Descriptor.open(path: directory, [.readOnly, .directory]).makeDirectory(name, mode: 0o700)
  }

  static func plantLink(_ directory: String, _ name: String, _ target: String) throws {
    try Descriptor.open(path: directory, [.readOnly, .directory])
      .makeSymbolicLink(name, to: target)
  }
}
