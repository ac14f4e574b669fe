internal import WormholeContainerStorage
internal import WormholePropertyLists

extension Channel {
  /// The path of the file with a copy of an earlier value; nil if there is no such value.
  package var keptFile: String? {
    guard let slot = try? slot.get(), let bytes = try? slot.readKept(),
      let file = try? Envelope.OpenFile(bytes, BinaryDecoder(limits: container.options.limits)),
      file.hasValue
    else { return nil }
    return "\(container.storage.path)/\(slot.keptPath)"
  }
}
