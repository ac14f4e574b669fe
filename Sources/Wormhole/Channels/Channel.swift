public import WormholeContainerStorage
internal import WormholePropertyLists

/// A named value that processes share: the latest value counts, from any process.
///
/// The value can have any `Codable` type; use ``PropertyListValue`` if the shape is not known, or
/// `Data`. A reader that asks for another type than the type of the value gets an error,
/// ``WormholeError/Code-swift.struct/typeMismatch``, which does not affect other readers.
///
/// Reading never waits. Changes are made in sequence, on the calling thread, and no change is
/// lost. A channel may be used from any thread, and many channel objects may have the same name.
public struct Channel<Value: Codable & Sendable>: Sendable {
  /// The channel's name.
  public let name: String
  let container: SharedContainer
  let slot: Result<Slot, WormholeError>

  init(_ name: String, _ container: SharedContainer) {
    self.name = name
    self.container = container
    slot = Result { () throws(WormholeError) in try container.storage.slot(.channels, name) }
  }

  /// Puts a value in place of the present content, damaged or not.
  ///
  /// - Parameters:
  ///   - value: the value that all processes read from now on.
  ///   - expected: the version that must be present, 0 for a channel that was never written; a
  ///     different version throws ``WormholeError/Code-swift.struct/conflict``.
  ///   - durability: the failures that the value survives once the call has returned; by default
  ///     as in the options.
  /// - Returns: the version of the value. After damage, versions continue from a larger number.
  @discardableResult
  public func put(
    _ value: Value, ifVersion expected: Int? = nil, durability: Durability? = nil
  ) throws(WormholeError) -> Int {
    do throws(WormholeError) {
      return try writer().put("put value into", value, ifVersion: expected, durability)
    } catch {
      return try putAtHome(value, ifVersion: expected, error)
    }
  }

  /// Clears the value; the version continues to rise.
  ///
  /// Watchers are notified. A channel that is clear already, or was never written, stays
  /// unchanged; only with `.power` is a channel that was cleared without a sync cleared once more.
  ///
  /// The previous value may stay readable on the disk: in case the latest value is damaged, the
  /// container stores one previous value of each channel until later values replace it.
  ///
  /// - Parameters:
  ///   - erasing: whether to remove all content that the channel ever held: the previous value,
  ///     and damaged files that were set aside. For this purpose, a channel that is clear already
  ///     is cleared once more. Copies that readers have made, and the remains of removed files on
  ///     a disk or in a backup, are out of reach. Once the call has returned, a power cut does
  ///     not bring the value back.
  ///   - expected: the version that must be present; a different version throws
  ///     ``WormholeError/Code-swift.struct/conflict``.
  ///   - durability: the failures that the change survives once the call has returned; by default
  ///     as in the options.
  /// - Returns: the version of the channel afterwards; 0 if the channel was never written.
  @discardableResult
  public func clear(
    erasing: Bool = false, ifVersion expected: Int? = nil, durability: Durability? = nil
  ) throws(WormholeError) -> Int {
    // Check first, so that clearing an unused name makes no channel of it.
    // A copy without content says nothing of its home.
    if expected ?? 0 == 0, try isUnwritten(), try slot.get().home() == nil {
      // A channel that was removed may have left damaged files.
      if erasing { try slot.get().discardDamaged(durability: .power) }
      return 0
    }
    let version: Int
    do throws(WormholeError) {
      version = try writer().clear(
        ifVersion: expected, erasing ? .power : durability, erasing: erasing)
    } catch {
      return try clearAtHome(erasing: erasing, ifVersion: expected, error)
    }
    if erasing { try slot.get().discardDamaged(durability: .power) }
    return version
  }

  func isUnwritten() throws(WormholeError) -> Bool {
    do throws(WormholeError) {
      if case .nothing = try slot.get().read() { return true }
      return false
    } catch {
      // A value that is too large to be read can be cleared nevertheless.
      guard error.code == .tooLarge else { throw error }
      return false
    }
  }

  /// The value; nil if the channel was cleared or never written.
  ///
  /// Each call reads the value again. If the value does not decode, the call throws
  /// ``WormholeError/Code-swift.struct/typeMismatch`` with the path inside the value and the
  /// reason.
  public var value: Value? { get throws(WormholeError) { try latest?.value } }

  /// The value with its version, time and sender; nil if the channel was never written.
  public var latest: Snapshot<Value>? {
    get throws(WormholeError) {
      let slot = try slot.get()
      return try reader().snapshot(of: slot.read(), as: Value.self)?.confirmed(slot)
    }
  }

  /// Version, time and sender, without decoding the value; nil if the channel was never written.
  public var metadata: Metadata? {
    get throws(WormholeError) {
      let slot = try slot.get()
      return try reader().metadata(of: slot.read())?.confirmed(slot)
    }
  }

  func reader(_ operation: String = "read channel") -> SlotReader {
    SlotReader(
      limits: container.options.limits, name: name, operation: operation,
      clock: container.options.environment.sinceEpoch)
  }

  func writer() throws(WormholeError) -> SlotWriter {
    SlotWriter(try slot.get(), of: container, name: name)
  }
}

extension SharedContainer {
  /// Returns the channel with a name.
  ///
  /// The call makes and reads nothing. A name that is empty, or longer than 180 bytes after
  /// escaping, is an error when the channel is used.
  public func channel<Value: Codable & Sendable>(
    _ name: String, of type: Value.Type = Value.self
  ) -> Channel<Value> {
    Channel(name, self)
  }
}

extension Channel {
  /// The path of the file with a copy of an earlier value; nil without such a copy.
  package var keptFile: String? {
    guard let slot = try? slot.get(), let bytes = try? slot.readKept(),
      let file = try? Envelope.OpenFile(bytes, BinaryDecoder(limits: container.options.limits)),
      file.hasValue
    else { return nil }
    return "\(container.storage.path)/\(slot.keptPath)"
  }
}
