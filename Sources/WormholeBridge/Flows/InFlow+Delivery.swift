internal import Wormhole
internal import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// What follows the cursor: the files of messages, and the messages themselves.
extension InFlow {
  /// Delivers what is staged.
  ///
  /// Each step may have been done before. A member whose directory was closed since the message was
  /// staged holds up no other.
  func run(_ steps: [FlowCursor.Step]) throws(WormholeError) {
    var receivers: Set<Carrier.Resident> = []
    var (attached, unneeded): (AttachedFile?, [String]) = (nil, [])
    for step in steps {
      switch step {
      case .attach(let file, let number, let receiver, let name):
        attached = try attach(file, number, name, to: receiver)
      case .remove(let file): unneeded.append(file)
      case .deliver(let number, let receiver, let name):
        if try deliver(number, name, to: receiver) { receivers.insert(receiver) }
        attached = nil
      case .cancel(let receiver, let name):
        do throws(WormholeError) {
          _ = try residents.carrier.cancel(name, to: receiver)
        } catch {
          guard error.isClosed else { throw error }
          residents.container.storage.log(
            .warning, "message '\(name.id)' of machine \(machine) is not cancelled: \(error)")
        }
      case .context(let number, let receiver, let name):
        try deliver(context: number, name, to: receiver)
      case .lend(let number, let queue, let name, let job):
        try lend(number, name, job, to: queue)
      }
    }
    // The next cursor does not name these messages any more.
    for receiver in receivers {
      do throws(WormholeError) {
        try residents.carrier.makeDurable(receiver)
      } catch {
        // The messages are delivered; only a power cut could undo that.
        guard error.isClosed else { throw error }
        residents.container.storage.log(.warning, "\(error)")
      }
    }
    for file in unneeded { try folder.remove(file) }
    withExtendedLifetime(attached) {}
  }

  /// Gives a message its file, which stays locked until the message is delivered.
  private func attach(
    _ file: String, _ number: Int, _ name: MessageName, to receiver: Carrier.Resident
  ) throws(WormholeError) -> AttachedFile? {
    // The receiver of a delivered message may have taken the file.
    guard try folder.contains(number.fileName) else { return nil }
    do throws(WormholeError) {
      return try residents.carrier.attach(
        file, in: folder.directory, to: name, of: receiver)
    } catch {
      // The message itself is refused next.
      guard error.isClosed else { throw error }
      return nil
    }
  }

  /// Delivers a message, or refuses it; false for a refused one.
  private func deliver(
    _ number: Int, _ name: MessageName, to receiver: Carrier.Resident
  ) throws(WormholeError) -> Bool {
    // A bridge that was killed may have refused the message before it removed the file.
    let isRefused = try refusals.contains(number, of: flow, name)
    let isKept = try KeptMessages.contains(number, of: flow, name, folder)
    if isRefused || isKept {
      try forget(number)
      return false
    }
    do throws(WormholeError) {
      _ = try residents.carrier.deliver(
        number.fileName, in: folder.directory, as: name, to: receiver)
      return true
    } catch {
      guard error.isClosed else { throw error }
      try refuseStaged(number, receiver, error)
      return false
    }
  }

  private func refuseStaged(
    _ number: Int, _ receiver: Carrier.Resident, _ error: WormholeError
  ) throws(WormholeError) {
    // Without the file the message was delivered, or refused before.
    guard let bytes = try folder.bytes(of: number.fileName),
      let list = try? BinaryPropertyList.decode(bytes),
      let origin = MessageOrigin(list[MessageOrigin.key])
    else { return }
    var intake = Intake()
    let entry = FlowEntry(.message, to: receiver, origin.name)
    try refuse(entry, number, bytes, error, &intake)
    if intake.hasRefusals { try refusals.makeDurable() }
    if intake.hasKept { try folder.makeDurable() }
    try forget(number)
  }

  /// Removes a refused message durably: if it appeared again, it might be delivered all the same.
  private func forget(_ number: Int) throws(WormholeError) {
    try folder.remove(number.fileName)
    try folder.makeDurable()
  }

  /// Makes dead letters of the kept messages whose receivers can have them now.
  func buryKept() throws(WormholeError) {
    for (file, kept) in try KeptMessages.all(in: folder) where try bury(kept) {
      try folder.remove(file)
    }
  }
}

extension WormholeError {
  /// Whether the message can never be delivered; every other error may pass.
  var isRefusal: Bool {
    isClosed
      || [.damaged, .tooLarge, .nameTaken, .conflict, .invalidValue, .typeMismatch].contains(code)
  }

  /// Whether the directory of a member cannot be used, though all others can.
  var isClosed: Bool { [.permissionDenied, .refused, .invalidName].contains(code) }
}
