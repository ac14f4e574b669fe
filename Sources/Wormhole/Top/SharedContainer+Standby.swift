internal import WormholeContainerStorage
internal import WormholeSyscalls

/// Standby processes: each waits for a name, and takes over when the holder of the name ends.
extension SharedContainer {
  /// Joins under a name as soon as no other process has it.
  ///
  /// If several processes stand by, one of them takes over, whichever is first. A process that is
  /// suspended or hangs keeps its name.
  ///
  /// - Parameters:
  ///   - name: as in `join(as:info:)`.
  ///   - info: as in `join(as:info:)`.
  ///   - timeout: how long to wait; nil for no limit. Afterwards the call throws
  ///     ``WormholeError/Code-swift.struct/nameTaken``.
  public func join(
    as name: String, info: [String: String] = [:], within timeout: Duration?
  ) throws(WormholeError) -> Member {
    let deadline = timeout.map { Instant.now + $0 }
    // Watched before the first attempt: no end of the holder is missed.
    let standby = try Standby(name, storage)
    while true {
      do throws(WormholeError) {
        return try join(as: name, info: info)
      } catch {
        guard error.code == .nameTaken, try standby.wait(until: deadline) else { throw error }
      }
    }
  }

  /// Joins under a name as soon as no other process has it.
  ///
  /// The async overload; a cancelled task waits no longer, and the process has not joined then.
  public func join(
    as name: String, info: [String: String] = [:], within timeout: Duration?
  ) async throws(WormholeError) -> Member {
    try await OffPool.run("join as", name) { () throws(WormholeError) in
      try self.join(as: name, info: info, within: timeout)
    }
  }

  /// Joins under a name as soon as no other process has it, for as long as the body runs; leaves
  /// however the body ends.
  @discardableResult
  public nonisolated(nonsending) func withMember<Result>(
    as name: String, info: [String: String] = [:], within timeout: Duration?,
    _ body: nonisolated(nonsending) (Member) async throws -> Result
  ) async throws -> Result {
    try await join(as: name, info: info, within: timeout).leaving(after: body)
  }
}

/// The wait for the end of a name's holder.
private final class Standby {
  private let storage: Container
  private let home: MemberDirectory
  /// The notices of an end; a notice may come without an end.
  private let ends = NoticeCount()
  private var watch: NamedWatch?

  /// How often the holder is looked for without a notice: its directory may be another one by now.
  private static let period = Duration.seconds(1)

  init(_ name: String, _ storage: Container) throws(WormholeError) {
    try storage.checkOwner("join as", name)
    self.storage = storage
    home = try storage.member(name)
    let ends = ends
    do throws(Errno) {
      if Mutants.has(.ignoreStandbyNotice) { return }
      watch = try home.watchEnd { ends.add() }
    } catch {
      throw WormholeError(error, "watch member", name, at: home)
    }
  }

  deinit { watch?.stop() }

  /// Returns once the name may be free; false after the deadline.
  func wait(until deadline: Instant?) throws(WormholeError) -> Bool {
    while deadline.map({ .now < $0 }) ?? true {
      try OffPool.checkCancellation("join as", home.name)
      let next = Instant.now + Self.period
      let isNoticed = ends.wait(until: deadline.map { min($0, next) } ?? next)
      try OffPool.checkCancellation("join as", home.name)
      if isNoticed { return true }
      // The member's directory may have been removed and made again.
      guard let present = try storage.existingMember(home.name) else { return true }
      let operation = "read the presence of member"
      if try !naming(operation, home.name, at: present, present.isPresent()) { return true }
    }
    return false
  }
}
