internal import PropertyLists
public import SharedContainer

extension Wormhole {
  /// A named value that processes share: the latest counts, whoever put it.
  ///
  /// Any `Codable` type can be the value, ``PropertyListValue`` where the shape is not known, or
  /// `Data`. Who asks for it as another type than it was put as gets an error of its own,
  /// ``WormholeError/Code-swift.struct/typeMismatch``, which changes nothing for the others.
  ///
  /// Reading waits for nobody. Changes are made one after the other, on the thread that calls, and
  /// none is lost. A channel may be used from any thread; many may be made for one name.
  public struct Channel<Value: Codable & Sendable>: Sendable {
    /// The channel's name.
    public let name: String
    let hole: Wormhole
    let slot: Result<Slot, WormholeError>

    init(_ name: String, _ hole: Wormhole) {
      self.name = name
      self.hole = hole
      slot = Result { () throws(WormholeError) in try hole.container.slot(.channels, name) }
    }

    /// Puts a value, in place of whatever is there, damaged or not.
    ///
    /// - Parameters:
    ///   - value: what everybody reads from now on.
    ///   - expected: puts it only if this version is there, 0 standing for a channel that was never
    ///     written; otherwise throws ``WormholeError/Code-swift.struct/conflict``.
    ///   - durability: what it survives once this has returned; by default what the options say.
    /// - Returns: the version that the value has. After damage, versions go on from a larger
    /// number.
    @discardableResult
    public func put(
      _ value: Value, ifVersion expected: Int? = nil, durability: Durability? = nil
    ) throws(WormholeError) -> Int {
      try writer().put("put value into", value, ifVersion: expected, durability)
    }

    /// Takes the value away; the version goes on.
    ///
    /// Watchers hear of it. A channel that is clear already, or was never written, stays as it is.
    ///
    /// The value before may stay readable on the disk: the container keeps one of each channel,
    /// for the case that the latest is damaged, until later ones take its place.
    ///
    /// - Parameters:
    ///   - erasing: keeps nothing of what the channel ever held: neither the value before, nor what
    ///     was found damaged and set aside. A channel that is clear already is cleared once more
    ///     for that. What others have read, and what a disk or a backup holds of removed files, is
    ///     beyond it. Once it has returned a power cut does not bring the value back.
    ///   - expected: clears it only if this version is there; otherwise throws
    ///     ``WormholeError/Code-swift.struct/conflict``.
    ///   - durability: what it survives once this has returned; by default what the options say.
    /// - Returns: the version that the channel has then; 0 if it was never written.
    @discardableResult
    public func clear(
      erasing: Bool = false, ifVersion expected: Int? = nil, durability: Durability? = nil
    ) throws(WormholeError) -> Int {
      // Looking first, so that clearing a name that nobody uses makes no channel of it.
      if expected ?? 0 == 0, try isUnwritten() { return 0 }
      let version = try writer().clear(
        ifVersion: expected, erasing ? .power : durability, erasing: erasing)
      if erasing { try slot.get().discardDamaged() }
      return version
    }

    func isUnwritten() throws(WormholeError) -> Bool {
      do throws(WormholeError) {
        if case .nothing = try slot.get().read() { return true }
        return false
      } catch {
        // What is too large to be read can be cleared all the same.
        guard error.code == .tooLarge else { throw error }
        return false
      }
    }

    /// The value; nil if the channel was cleared, or never written.
    ///
    /// It is read anew each time. Throws ``WormholeError/Code-swift.struct/typeMismatch`` with the
    /// place inside the value and the reason if it does not decode.
    public var value: Value? { get throws(WormholeError) { try latest?.value } }

    /// The value with its version, time and sender; nil if the channel was never written.
    public var latest: Snapshot<Value>? {
      get throws(WormholeError) { try reader().snapshot(of: slot.get().read()) }
    }

    /// Version, time and sender, without decoding the value; nil if the channel was never written.
    public var metadata: Metadata? {
      get throws(WormholeError) { try reader().metadata(of: slot.get().read()) }
    }

    func reader(_ operation: String = "read channel") -> SlotReader {
      SlotReader(limits: hole.options.limits, name: name, operation: operation)
    }

    func writer() throws(WormholeError) -> SlotWriter {
      SlotWriter(try slot.get(), of: hole, name: name)
    }
  }

  /// The channel of that name.
  ///
  /// Nothing is made or looked at before it is used; a name that cannot be used, because it is
  /// empty or longer than 180 bytes once escaped, is an error then.
  public func channel<Value: Codable & Sendable>(
    _ name: String, of type: Value.Type = Value.self
  ) -> Channel<Value> {
    Channel(name, self)
  }
}
